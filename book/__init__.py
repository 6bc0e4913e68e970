"""The book's machinery: its build, its Sphinx extension, its static files."""
