"""The call tree in the terminal, to browse; needs the extra `tui`."""
