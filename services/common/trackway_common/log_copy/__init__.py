"""A log copied into a folder: written from a live one, verified and read anywhere, with no broker and no service.

The format is documented in docs/log-export.md.
"""
