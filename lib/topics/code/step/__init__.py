"""What a version was worth: before, this, and the best of cuBLAS."""
