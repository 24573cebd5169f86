"""Masks: which pairs may look at one another, a file a paper."""
