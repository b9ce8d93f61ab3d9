"""Launches in which configurations of kernels are compared: they are not those that count."""

from __future__ import annotations

from threading import local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any


class _Tuning(local):
    """Of this thread."""

    depth = 0


_TUNING = _Tuning()


def is_tuning() -> bool:
    """Whether this thread is comparing configurations."""
    return _TUNING.depth > 0


def follow_triton(triton: ModuleType) -> Callable[[], None]:
    """Know when Triton's autotuner does; returns what undoes it."""
    return _follow([(triton.runtime.autotuner.Autotuner, "_bench")])


def follow_inductor(heuristics: ModuleType) -> Callable[[], None]:
    """Know when PyTorch's does, of variants of one kernel or of whole templates; returns what undoes it."""
    return _follow([(heuristics.CachingAutotuner, "bench"), (type(heuristics.benchmarker), "benchmark_gpu")])


def _follow(functions: Sequence[tuple[type, str]]) -> Callable[[], None]:
    originals = [(kind, name, getattr(kind, name)) for kind, name in functions]
    for kind, name, original in originals:
        setattr(kind, name, _counted(original))

    def undo() -> None:
        for kind, name, original in originals:
            setattr(kind, name, original)

    return undo


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*arguments: Any, **options: Any) -> Any:
        _TUNING.depth += 1
        try:
            return function(*arguments, **options)
        finally:
            _TUNING.depth -= 1

    return counted
