"""Loops of Python that do for one element, row or member at a time what one call could do for all."""
