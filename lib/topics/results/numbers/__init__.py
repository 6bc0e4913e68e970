"""Numbers that stand in a sentence, each with the expression that it comes from."""
