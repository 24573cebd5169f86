"""Observing a run: the stages of a step, and what to do where memory is short."""
