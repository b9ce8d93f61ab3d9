"""JAX: calls of compiled functions, what their programs say of their operations, and its profiler."""
