"""Code in a terminal, line by line, with what was measured of it."""
