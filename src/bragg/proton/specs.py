"""Peaks of devices as Proton computes them, and of the architectures that it does not know."""

from __future__ import annotations

from bragg.analyze.specs import max_bps, max_flops

__all__ = ["max_bps", "max_flops"]
