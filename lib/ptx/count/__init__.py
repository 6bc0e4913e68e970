"""What a launch did, counted as Nsight Compute counts it: sectors, wavefronts, instructions."""
