"""Measurements inside kernels by the records that Triton's own compiler knows: `backend="instrumentation"`."""
