"""What runs any instruction: parsing, decoding, registers, memory, scheduling, errors."""
