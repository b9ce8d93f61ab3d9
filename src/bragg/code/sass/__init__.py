"""What the machine code of kernels says: its listing, what instructions compute, and which one waits for which."""
