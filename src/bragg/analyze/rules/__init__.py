"""What to look for in a profile, one file each: rows of `bragg.registry.RULES`, asked by `bragg.analyze.engine`."""
