"""What an attempt is and why it ended. Pure: no clock, no I/O."""
