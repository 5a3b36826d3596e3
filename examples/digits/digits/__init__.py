"""Handwritten digits, trained in seconds."""
