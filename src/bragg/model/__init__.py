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

_PLACES = {
    "CallTree": "bragg.model.tree",
    "Combine": "bragg.model.metric",
    "Confidence": "bragg.model.finding",
    "CounterTable": "bragg.model.trace",
    "DurationTable": "bragg.model.durations",
    "Finding": "bragg.model.finding",
    "FlowTable": "bragg.model.trace",
    "FrameKind": "bragg.model.tree",
    "FrameTable": "bragg.model.tree",
    "Gain": "bragg.model.finding",
    "IdleKind": "bragg.model.idle",
    "IdleTable": "bragg.model.idle",
    "InputTable": "bragg.model.inputs",
    "KernelTable": "bragg.model.kernels.configurations",
    "Metric": "bragg.model.metric",
    "MetricKind": "bragg.model.metric",
    "Place": "bragg.model.finding",
    "Profile": "bragg.model.profile",
    "Quantity": "bragg.model.finding",
    "Severity": "bragg.model.finding",
    "SliceTable": "bragg.model.trace",
    "TrackKind": "bragg.model.trace",
    "TrackTable": "bragg.model.trace",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'bragg.model' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_PLACES[name]), name))
