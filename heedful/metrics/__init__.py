"""Metrics: how good answers are, in figures that can be merged over processes."""
