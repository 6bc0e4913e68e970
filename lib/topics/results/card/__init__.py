"""A page's card: what is shown of it where somebody links to it."""
