"""Rows of the state tables, built purely from one commit or measurement and its position in the log.

A row is a dataclass: its fields are its table's columns, its ``TABLE`` names the table.
"""
