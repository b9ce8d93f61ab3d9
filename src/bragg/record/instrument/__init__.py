"""Launches of kernels with clocks inside: which ones, what they cost, and where their readings go."""
