"""The shape of a backend: what Python knows of a source of events (native/backends/event_source.h)."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from bragg.record.hooks.imports import Hook


class Backend(ABC):
    """The Python side of a way to measure.

    Attributes:
        name: As the native core calls it.
        injection_variables: Tool variables through which the native core must come into a process.
        sample_interval_us: Time between two samples of the host unless the user chooses it; 0: none.
    """

    name: str
    injection_variables: tuple[str, ...]
    sample_interval_us: int

    @abstractmethod
    def missing(self, environ: Mapping[str, str]) -> str:
        """Why this machine cannot be measured so; empty when it can. Initialises no device."""

    def library_candidates(self, environ: Mapping[str, str], search_path: Sequence[str]) -> list[str]:
        """Vendor libraries to measure with, best first.

        Args:
            environ: The environment.
            search_path: Directories of installed Python packages.
        """
        return []

    @abstractmethod
    def hooks(self, options: Mapping[str, Any]) -> list[Hook]:
        """What makes frameworks report to the native core once they are imported.

        Args:
            options: What to record, as `RecordConfig.options` lists it.
        """
