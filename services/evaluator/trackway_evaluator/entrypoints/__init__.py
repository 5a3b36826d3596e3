"""How others ask the evaluator."""
