"""The line of the program that enables 64-bit numbers of JAX: arrays have them then, unless they are told otherwise."""

from __future__ import annotations

import sys

from bragg.record.hooks.jax.lines import line_of_program
from bragg.record.hooks.methods import before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.methods import Undo

__all__ = ["HOOK", "enabled_at", "record_doubles"]

_enabled: list[str] = []


def record_doubles(config: ModuleType) -> Undo | None:
    """Keep the line that enables them.

    Returns:
        What undoes it; None when this JAX is configured otherwise.
    """
    kind = type(getattr(config, "config", None))
    return before(kind, "update", _update) if "update" in vars(kind) else None


def _update(_config: Any, name: str = "", value: Any = None) -> None:
    if name == "jax_enable_x64":
        _enabled[:] = [line_of_program(sys._getframe(3))] if value else []


def enabled_at() -> str:
    """The line that has enabled them; empty: they are not enabled, or otherwise."""
    return "".join(_enabled)


HOOK = ("jax._src.config", record_doubles)
"""The module of JAX, and the function that patches it."""
