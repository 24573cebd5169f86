"""Losses on where heads look: a file a paper, and `told`, which any task is judged by."""
