"""What others can ask of a trainer-agent."""
