"""Profiles as text: pure functions from a profile to lines."""
