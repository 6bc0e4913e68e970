"""The last wave of tiles, cut along K into equal shares."""
