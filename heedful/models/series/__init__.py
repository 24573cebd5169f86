"""Families of models of time series."""
