"""Rules about work of GPUs that operators need not do, or could do in a cheaper way."""
