"""Pictures of numbers: one module a kind of figure, one style for all. Nothing here computes."""
