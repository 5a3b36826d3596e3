"""A run's history from its facts, the receipt of each attempt, and the explanation of what happened.

Pure folds over accepted commits: they work on the live log, on rows of the read model and on a copied log.
"""
