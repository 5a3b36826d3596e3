"""Carries commands out on the commit logs, mirrors the logs as facts, and frees what may go."""
