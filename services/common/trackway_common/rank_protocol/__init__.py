"""What a trainer's SDK and its rank's actor say to each other over a Unix socket, and the error file between them.

Standard library only: the trainer may run another Python than the actor.
"""
