"""PyTorch: operators, modules, regions and backward passes."""
