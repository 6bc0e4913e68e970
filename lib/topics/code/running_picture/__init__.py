"""The running picture: grid, block, warp and thread beside the loop nest, chapter by chapter."""
