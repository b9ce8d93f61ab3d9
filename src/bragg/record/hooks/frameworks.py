"""The hooks into frameworks that record their operators."""

from __future__ import annotations

from bragg.record import variables
from bragg.record.hooks import autograd, checkpoint, jax, modules, torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from bragg.record.hooks.imports import Hook

__all__ = ["operator_hooks"]


def operator_hooks(settings: Mapping[str, str]) -> list[Hook]:
    """What records operators of the frameworks that are wanted.

    Args:
        settings: Environment variables that say what to record.
    """
    of_torch: list[Hook] = [
        ("torch", autograd.follow_backward),
        ("torch", torch.record_operators),
        (checkpoint.MODULE, checkpoint.mark_recomputation),
        *([("torch", modules.record_modules)] if settings[variables.MODULES] == "1" else []),
    ]
    of_jax: list[Hook] = [("jax", jax.read_ranges)]
    return {"auto": [*of_torch, *of_jax], "torch": of_torch, "jax": of_jax, "off": []}[settings[variables.FRAMEWORK]]
