"""Rules about the host and the framework: what keeps a GPU waiting, and work that it need not do."""
