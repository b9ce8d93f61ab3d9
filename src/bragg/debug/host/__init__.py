"""Where a launch comes from: its arguments and arrays, and a host that has no GPU."""
