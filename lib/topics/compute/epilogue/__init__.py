"""What becomes of sums before they are stored: what it costs, what it saves, what it reached."""
