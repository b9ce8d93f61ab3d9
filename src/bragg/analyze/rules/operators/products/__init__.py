"""Products of matrices, and layers, that compute more than the program uses, or whose matrices have a structure."""
