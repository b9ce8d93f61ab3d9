"""Facts of compiled kernels, read out of their texts: a file for each text, and `facts`, which joins them."""
