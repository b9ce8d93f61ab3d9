"""speedscope JSON, read and written."""
