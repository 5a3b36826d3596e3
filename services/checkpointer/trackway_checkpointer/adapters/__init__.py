"""What the checkpointer keeps beside the commit logs."""
