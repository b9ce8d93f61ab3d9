"""Clocks in the PTX of kernels: where they are read, how they are stored, and what they say."""
