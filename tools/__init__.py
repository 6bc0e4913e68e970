"""What engineers run beside the tests: how strong these are, and which to run first."""
