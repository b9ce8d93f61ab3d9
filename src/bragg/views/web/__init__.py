"""Profiles in a browser: one page that holds everything."""
