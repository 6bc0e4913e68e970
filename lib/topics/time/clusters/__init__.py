"""How many clusters of a persistent kernel run at once, and what one that waits costs."""
