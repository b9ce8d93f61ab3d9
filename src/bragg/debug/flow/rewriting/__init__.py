"""The text of a kernel with its control flow made explicit."""
