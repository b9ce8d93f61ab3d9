"""Causes in the code of kernels and in how they are launched, one file each."""
