"""A language model over bytes, trained on the text of Python's standard library."""
