"""How others ask the checkpointer."""
