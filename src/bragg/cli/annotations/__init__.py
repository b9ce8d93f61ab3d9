"""Findings of `bragg check` for other tools, one file each; `bragg.registry.ANNOTATIONS` lists them."""
