"""Findings of `bragg check` for other tools, a file each (`registry.ANNOTATIONS`), and in a profile (`carried`)."""
