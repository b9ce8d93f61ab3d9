"""PyTorch: what activation checkpointing runs once more in the backward pass is below `[recompute]`."""

from __future__ import annotations

from functools import wraps

from bragg.core import core
from bragg.record.inside.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


MODULE = "torch.utils.checkpoint"
_RECOMPUTE = "[recompute]"


def mark_recomputation(checkpoint: ModuleType) -> Callable[[], None] | None:
    """Mark both ways of recomputing: inside a node of autograd of its own, and when a saved tensor is unpacked.

    Returns:
        What undoes it; None when this PyTorch recomputes otherwise.
    """
    function = getattr(checkpoint, "CheckpointFunction", None)
    frame = getattr(checkpoint, "_CheckpointFrame", None)
    if not hasattr(function, "forward") or "recompute_fn" not in getattr(frame, "__init__", note).__code__.co_varnames:
        note("this PyTorch recomputes in an unknown way: what checkpoints run again is not marked")
        return None
    assert function is not None
    assert frame is not None
    forward, initialize = function.forward, frame.__init__

    @wraps(forward)
    def forward_marking(ctx: Any, run_function: Any, *arguments: Any) -> Any:
        result = forward(ctx, run_function, *arguments)
        ctx.run_function = _marked(run_function)
        return result

    @wraps(initialize)
    def initialize_marking(self: Any, *arguments: Any, **options: Any) -> None:
        initialize(self, *arguments, **options)
        self.recompute_fn = _marked(self.recompute_fn)

    function.forward = staticmethod(forward_marking)
    frame.__init__ = initialize_marking

    def undo() -> None:
        function.forward, frame.__init__ = staticmethod(forward), initialize

    return undo


def _marked(recompute: Callable[..., Any]) -> Callable[..., Any]:
    def recompute_marked(*arguments: Any, **options: Any) -> Any:
        core.enter_state(_RECOMPUTE)
        try:
            return recompute(*arguments, **options)
        finally:
            core.exit_state()

    return recompute_marked
