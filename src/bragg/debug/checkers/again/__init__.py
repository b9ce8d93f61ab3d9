"""Checkers that execute a launch again, in another way, and compare what comes out."""
