"""Checkpoints: models as folders, in the native layout."""
