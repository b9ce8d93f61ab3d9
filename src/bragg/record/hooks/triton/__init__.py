"""Triton: what its kernels are called and what their launches say."""
