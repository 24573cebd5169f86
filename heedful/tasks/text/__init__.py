"""Tasks of text, a record of parts each."""
