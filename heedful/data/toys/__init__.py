"""Toy data sets, made on the fly."""
