"""Files and other services as the scheduler reaches them."""
