"""Stopping in kernels."""
