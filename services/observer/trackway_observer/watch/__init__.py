"""Stream watches: advisory, self-healing, in a process of their own."""
