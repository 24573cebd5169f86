"""Pipelines: typed inputs become typed results, by a model and what it keeps of its data."""
