"""Pallas kernels of JAX: their jaxprs are executed program by program, and every access to a reference is checked."""
