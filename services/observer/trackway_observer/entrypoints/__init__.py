"""What reaches the observer over the network."""
