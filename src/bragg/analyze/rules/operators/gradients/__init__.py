"""Gradients that are larger, more, or computed more often than what reads them."""
