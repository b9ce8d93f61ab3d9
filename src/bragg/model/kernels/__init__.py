"""Kernels: their names, how they were launched, what compilers made of them, and what was measured inside of them."""
