"""Distributed training: the ranks of a run, and how a model is sharded over them."""
