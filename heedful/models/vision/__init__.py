"""Families of models of images."""
