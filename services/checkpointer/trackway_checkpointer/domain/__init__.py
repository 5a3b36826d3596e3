"""What entries of a commit log are as facts, and what a command asks for."""
