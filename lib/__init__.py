"""What the chapters, the tests and the command line call; the map is in the README."""
