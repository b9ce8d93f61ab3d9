"""The data model: profiles as numpy columns, without I/O and without clocks.

Names are loaded at first use: some parts need no numpy, and neither does who uses only them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bragg.model.durations import DurationTable
    from bragg.model.finding import Confidence, Finding, Gain, Place, Quantity, Severity
    from bragg.model.idle import IdleKind, IdleTable
    from bragg.model.inputs import InputTable
    from bragg.model.kernels.configurations import KernelTable
    from bragg.model.metric import Combine, Metric, MetricKind
    from bragg.model.profile import Profile
    from bragg.model.trace import CounterTable, FlowTable, SliceTable, TrackKind, TrackTable
    from bragg.model.tree import CallTree, FrameKind, FrameTable

__all__ = [
    "CallTree",
    "Combine",
    "Confidence",
    "CounterTable",
    "DurationTable",
    "Finding",
    "FlowTable",
    "FrameKind",
    "FrameTable",
    "Gain",
    "IdleKind",
    "IdleTable",
    "InputTable",
    "KernelTable",
    "Metric",
    "MetricKind",
    "Place",
    "Profile",
    "Quantity",
    "Severity",
    "SliceTable",
    "TrackKind",
    "TrackTable",
]

# The imports above, for who runs the code.
_NAMES = {
    "durations": ("DurationTable",),
    "finding": ("Confidence", "Finding", "Gain", "Place", "Quantity", "Severity"),
    "idle": ("IdleKind", "IdleTable"),
    "inputs": ("InputTable",),
    "kernels.configurations": ("KernelTable",),
    "metric": ("Combine", "Metric", "MetricKind"),
    "profile": ("Profile",),
    "trace": ("CounterTable", "FlowTable", "SliceTable", "TrackKind", "TrackTable"),
    "tree": ("CallTree", "FrameKind", "FrameTable"),
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(f"bragg.model.{module}"), name))
    raise AttributeError(f"module 'bragg.model' has no attribute {name!r}")
