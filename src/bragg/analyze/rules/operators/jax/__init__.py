"""What jitted functions of JAX compute or copy though the program need not."""
