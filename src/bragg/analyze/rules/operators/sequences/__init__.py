"""Attention and its masks; positions of sequences for which work is done in vain."""
