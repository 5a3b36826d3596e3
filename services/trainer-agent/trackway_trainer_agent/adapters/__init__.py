"""What the agent reaches the world through: Ray in a child process, the log spool on disk."""
