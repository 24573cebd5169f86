"""Formats of checkpoints: models as folders, in the native layout and in those of others."""
