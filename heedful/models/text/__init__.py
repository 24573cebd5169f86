"""Families of models of text."""
