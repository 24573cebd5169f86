"""Tasks of series, a record of parts each."""
