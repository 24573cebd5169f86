"""Families of models of sets and sequences of vectors."""
