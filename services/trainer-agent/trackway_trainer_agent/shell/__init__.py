"""Performs what the domain decides, and records the outcome."""
