"""Tasks of vision, a record of parts each."""
