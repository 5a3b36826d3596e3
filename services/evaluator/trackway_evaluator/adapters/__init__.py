"""Processes, files and blobs behind the evaluator's decisions."""
