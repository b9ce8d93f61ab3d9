"""Calls of jitted functions whose dispatch, or whose way back to Python, a GPU waits for."""
