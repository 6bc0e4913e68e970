"""A tile whose K several blocks of a cluster share, and how their sums come together."""
