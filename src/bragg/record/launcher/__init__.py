"""The process that starts the target: how it is run, and the profiles of its captures."""
