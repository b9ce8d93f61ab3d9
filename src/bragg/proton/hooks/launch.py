"""The hook that names kernels and adds their metrics by their `launch_metadata`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from bragg.proton.hooks.hook import Hook
from bragg.proton.metric import FLOPS_WIDTHS
from bragg.proton.recording import open_scopes
from bragg.proton.state import COMPUTE_METADATA_SCOPE_NAME
from bragg.record.hooks.imports import ImportWatch, when_imported
from bragg.record.hooks.triton import launch_metadata

__all__ = ["COMPUTE_METADATA_SCOPE_NAME", "LaunchHook", "id", "op_name"]

_Value = TypeVar("_Value")


class LaunchHook(Hook):
    """Launches are called, and have the metrics, that the `launch_metadata` function of their kernel says.

    There is one, which every call of the class returns. The native core does its work at each launch.
    """

    priority = 100
    is_called = False
    flops_width: ClassVar[list[int]] = list(FLOPS_WIDTHS)
    metrics: ClassVar[list[str]] = [*(f"flops{width}" for width in FLOPS_WIDTHS), "bytes", "flops"]
    _instance: ClassVar[LaunchHook | None] = None
    _watch: ImportWatch | None

    def __new__(cls) -> LaunchHook:
        """The one hook."""
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._watch = None
        return cls._instance

    def configure(self, *, include: str | None = None, exclude: str | None = None) -> None:
        """Choose kernels by name, both that of the function and the one that its metadata gives it.

        Args:
            include: Regular expression that a name must begin with.
            exclude: Regular expression that a name must not begin with.
        """
        launch_metadata.choose_kernels(_filter(include, exclude) if include or exclude else None)

    def init_handle(self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str) -> None:
        """Nothing is kept of a kernel."""

    def enter(self, metadata: Any) -> None:
        """Nothing is left to be done."""

    def exit(self, metadata: Any) -> None:
        """Nothing is left to be done."""

    def activate(self) -> None:
        """Ask launches from now on."""
        self._watch = when_imported("triton", launch_metadata.ask_launches)

    def deactivate(self) -> None:
        """Ask no more."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.remove()


def _filter(include: str | None, exclude: str | None) -> Callable[[str], bool]:
    wanted, unwanted = re.compile(include or ""), re.compile(exclude or "(?!)")
    return lambda name: wanted.match(name) is not None and unwanted.match(name) is None


class _OfLaunch(Generic[_Value]):
    """Stands for a context variable that Proton sets at each launch, which would cost more than the launch's record."""

    def __init__(self, value: Callable[[], _Value]) -> None:
        self._value = value

    def get(self, default: _Value | None = None) -> _Value | None:
        """The value for the launch that was made last on this thread."""
        return self._value()


# Every look-up gives another id, as every launch has another.
id = _OfLaunch(open_scopes.next_id)
op_name: _OfLaunch[str | None] = _OfLaunch(lambda: None)
