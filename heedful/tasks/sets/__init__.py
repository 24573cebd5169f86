"""Tasks of sets, a record of parts each."""
