"""What a card shows of a kernel: the lines that change, and a file to take away."""
