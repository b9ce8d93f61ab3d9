"""Rules about what keeps the host from launching while a GPU waits."""
