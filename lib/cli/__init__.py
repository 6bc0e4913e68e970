"""``python -m lib``: a module a subject."""
