"""The process that evaluates: one try of one evaluation. The only torch of the evaluator."""
