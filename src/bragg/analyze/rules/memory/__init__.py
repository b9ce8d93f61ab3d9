"""Rules about how kernels use memory."""
