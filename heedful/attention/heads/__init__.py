"""Ways for attention heads to share parameters and to join again; each paper has a file."""
