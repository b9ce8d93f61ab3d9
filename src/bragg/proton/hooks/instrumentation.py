"""The hook of sessions that measure inside kernels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

from bragg.proton.hooks.hook import Hook

__all__ = ["InstrumentationHook"]


class InstrumentationHook(Hook):
    """Measurements inside kernels, which are not there yet: it says so, and measures nothing.

    Args:
        mode_obj: What to measure.
    """

    priority = 0
    is_called = False
    active_count: ClassVar[int] = 0
    enable_host_buffer: ClassVar[bool] = False
    host_buffer: ClassVar[Any] = None
    profile_buffer_size: ClassVar[int] = 1
    profile_buffer_alignment: ClassVar[int] = 128

    def __init__(self, mode_obj: Any) -> None:
        self.mode = mode_obj

    def init_handle(self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str) -> None:
        """Nothing is kept of a kernel."""

    def enter(self, metadata: Any) -> None:
        """Nothing is measured."""

    def exit(self, metadata: Any) -> None:
        """Nothing was measured."""

    def activate(self) -> None:
        """Say that nothing is measured.

        Raises:
            RuntimeError: Another one is active.
        """
        if InstrumentationHook.active_count > 0:
            raise RuntimeError("Only one instance of the instrumentation hook can be active at a time.")
        InstrumentationHook.active_count += 1
        warnings.warn("measurements inside kernels are not there yet: none is made", RuntimeWarning, stacklevel=5)

    def deactivate(self) -> None:
        """Let another one be active."""
        InstrumentationHook.active_count -= 1
