"""What the evaluator decides: pure, from facts to facts."""
