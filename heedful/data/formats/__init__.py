"""Formats of data files, one file each."""
