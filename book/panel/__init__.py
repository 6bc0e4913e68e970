"""The panels "Run it here" in the book: what they load, where they stand, their scripts."""
