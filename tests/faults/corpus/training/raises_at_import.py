"""Raises while it is imported."""

raise RuntimeError("this module refuses to be imported")
