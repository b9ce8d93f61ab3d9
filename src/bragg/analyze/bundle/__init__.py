"""One kernel of a profile as files, and the script that reproduces it."""
