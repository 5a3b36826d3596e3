"""A small language model of bytes, trained on Python's own standard library."""
