"""What the scheduler decides, without clock, id, randomness or I/O."""
