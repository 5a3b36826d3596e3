"""Carries orders out: folds, decides, starts processes and records how they ended."""
