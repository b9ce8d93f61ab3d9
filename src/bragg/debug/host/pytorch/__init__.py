"""PyTorch where there is no GPU."""
