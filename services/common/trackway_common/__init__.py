"""The shared kernel: the facts, the log and the edges that every service needs.

A module belongs here when two services import it; anything else stays with its service.
"""
