"""Showing profiles to people."""
