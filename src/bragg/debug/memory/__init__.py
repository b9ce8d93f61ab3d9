"""Tensors, the accesses of kernels to them, and what is remembered of each element."""
