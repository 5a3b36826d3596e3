"""From the log to tables: every accepted fact and every measurement, once in effect."""
