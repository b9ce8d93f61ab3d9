"""Rules about what clocks inside of kernels say: `bragg run --instrument`."""
