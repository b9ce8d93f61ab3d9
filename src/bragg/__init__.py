"""A profiler for GPU programs."""
