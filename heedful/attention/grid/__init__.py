"""Attention on grids, as of the patches of an image: their sight, windows, tables and gates."""
