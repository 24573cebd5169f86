"""Text: how it becomes tokens, and tokens text."""
