"""Host time alone: scopes, samples of the Python call path, operators of PyTorch."""

from __future__ import annotations

from bragg.record import variables
from bragg.record.backends.backend import Backend
from bragg.record.hooks.frameworks import operator_hooks
from bragg.record.hooks.torch import itt_operators

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bragg.record.hooks.imports import Hook


class Cpu(Backend):
    """The backend where there is no GPU."""

    name = "cpu"
    injection_variables = (variables.ITT_COLLECTOR, variables.NVTX_INJECTION)
    sample_interval_us = 1_000

    def missing(self, environ: Mapping[str, str]) -> str:
        """Nothing ever is."""
        return ""

    def hooks(self, options: Mapping[str, Any]) -> list[Hook]:
        """Record operators, and inherit the context of `backward` in PyTorch's worker threads."""
        return [("torch", itt_operators.inherit_context), *operator_hooks(options)]
