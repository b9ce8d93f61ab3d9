"""What META of a profile says of its run, typed."""
