"""Texts of kernels: what compilers made of them, where each instruction comes from, and the names of native code."""
