"""Kernels compiled for a GPU that need not be there."""
