"""Checkers of kernels, one file each; `bragg.registry.CHECKERS` lists them."""

from bragg.debug.checkers.checker import Checker, Recorder

__all__ = ["Checker", "Recorder"]
