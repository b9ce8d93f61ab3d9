"""Jobs of many ranks at the command line."""
