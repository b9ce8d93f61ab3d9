"""The call tree in the terminal, to walk about in; needs the extra `tui`."""
