"""The hooks into frameworks that record their operators."""

from __future__ import annotations

from bragg.record import variables
from bragg.record.hooks import autograd, checkpoint, modules, torch

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
    if settings[variables.FRAMEWORK] not in ("auto", "torch"):
        return []
    return [
        ("torch", autograd.follow_backward),
        ("torch", torch.record_operators),
        (checkpoint.MODULE, checkpoint.mark_recomputation),
        *([("torch", modules.record_modules)] if settings[variables.MODULES] == "1" else []),
    ]
