"""An SM: what it is made of, and where a warp waits in it."""
