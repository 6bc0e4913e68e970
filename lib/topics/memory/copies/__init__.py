"""Which thread copies what of a stage, and in which step of the loop."""
