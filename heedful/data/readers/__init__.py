"""Readers: data become samples, by readers that own their keys."""
