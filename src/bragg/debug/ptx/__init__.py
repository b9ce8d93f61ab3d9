"""Inline assembly: PTX, executed on registers of all programs at once."""
