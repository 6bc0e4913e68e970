"""The race detector: which accesses to one word nothing orders."""
