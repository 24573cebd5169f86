"""Observing a run: stages of a step, profile, cost, estimates of memory and what to do where it is short."""
