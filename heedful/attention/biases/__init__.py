"""Biases: what is added to a score by where row and column stand, a file a paper."""
