"""The data model: profiles as numpy columns, without I/O and without clocks."""

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
