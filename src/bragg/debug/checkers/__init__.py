"""Checkers of kernels, one file each; `bragg.registry.CHECKERS` lists them."""

from bragg.debug.checkers.checker import Checker, LaunchFindings

__all__ = ["Checker", "LaunchFindings"]
