"""Performs what the domain decides: owns the runs topic, tails the others, leads or stands by."""
