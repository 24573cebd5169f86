"""Data: files and toys become samples, and samples batches."""
