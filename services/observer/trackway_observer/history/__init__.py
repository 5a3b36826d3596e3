"""Reading what was projected: attempts, explanations, people's own SQL."""
