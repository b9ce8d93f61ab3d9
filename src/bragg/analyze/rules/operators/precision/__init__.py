"""Types of numbers that are wider than a product or a kernel needs."""
