"""PyTorch: calls that wait for a GPU are scopes, so they are counted without recording the GPU's API.

A program that the GPU hardly keeps waiting is in such a call too shortly for samples of its call path.
"""

from __future__ import annotations

from bragg.core import core
from bragg.record.hooks.methods import is_traced, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.methods import Undo


_NAME = "synchronize"


def record_waits(torch: ModuleType) -> Undo:
    """Record calls of `synchronize` for a device, a stream and an event.

    Returns:
        What undoes it.
    """
    is_compiling = is_traced(torch)

    def recorded(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        scope = core.Scope(name)

        def wrapper(wait: Callable[..., Any]) -> Callable[..., Any]:
            def wait_recorded(*arguments: Any, **options: Any) -> Any:
                if is_compiling():
                    return wait(*arguments, **options)
                with scope:
                    return wait(*arguments, **options)

            return wait_recorded

        return wrapper

    cuda = torch.cuda
    places = {"torch.cuda": cuda, "torch.cuda.Stream": cuda.Stream, "torch.cuda.Event": cuda.Event}
    undo_each = [wrap(place, _NAME, recorded(f"{path}.{_NAME}")) for path, place in places.items()]

    def undo() -> None:
        for undo_one in undo_each:
            undo_one()

    return undo
