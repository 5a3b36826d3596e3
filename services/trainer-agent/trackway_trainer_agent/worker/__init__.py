"""What runs beside each rank: the actor that supervises one training process, and its launcher."""
