"""What heads share, and how they come together again: a file a paper."""
