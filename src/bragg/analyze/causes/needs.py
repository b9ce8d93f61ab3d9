"""What a rule needs to judge; it is skipped, and the reason is shown, where a profile does not have it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from bragg.analyze.causes.evidence import Evidence
from bragg.model import FrameKind, FrameTable
from bragg.model.kernels.names import is_specialized
from bragg.model.meta.gpu_memory import gpu_memory_of

TRACE = "--data trace"
"""The option of `bragg run` that records a timeline."""


@dataclass(frozen=True)
class Need:
    """Something that a profile has or has not.

    Attributes:
        what: What is missing, in words.
        option: How to record it: an option of `bragg run`; empty: no option does.
        is_met: Whether a profile has it.
        is_of_program: Whether the program lacks it, not the recording: nothing is missed then.
    """

    what: str
    option: str
    is_met: Callable[[Evidence], bool]
    is_of_program: bool = False


def _has(metric: str) -> Callable[[Evidence], bool]:
    return lambda evidence: metric in evidence.profile.metrics and evidence.profile.total(metric) > 0


def _kind(kind: FrameKind) -> Callable[[Evidence], bool]:
    return lambda evidence: bool((evidence.profile.tree.frames.kind == kind).any())


# Launches, copies and fills are in every timeline.
_LAUNCHING = re.compile(r"\w*(?:Launch|Memcpy|Memset)\w*")


def _calls_api(evidence: Evidence) -> bool:
    frames = evidence.profile.tree.frames
    return any(
        kind == FrameKind.GPU_API and not _LAUNCHING.fullmatch(name)
        for kind, name in zip(frames.kind.tolist(), frames.name, strict=True)
    )


def _has_code(evidence: Evidence) -> bool:
    """A program without Triton kernels has no defect in one."""
    return bool(len(evidence.compiled)) or not _has_specialized(evidence.profile.tree.frames)


@lru_cache(maxsize=1)  # thirty rules ask
def _has_specialized(frames: FrameTable) -> bool:
    kernels = (name for name, kind in zip(frames.name, frames.kind.tolist(), strict=True) if kind == FrameKind.KERNEL)
    return any(map(is_specialized, kernels))


def _runs_torch(frames: FrameTable) -> bool:
    """Whether operators of PyTorch ran: a program without them has no defect in its use of autograd."""
    kinds = zip(frames.name, frames.kind.tolist(), strict=True)
    return any(kind == FrameKind.OPERATOR and name.startswith("aten::") for name, kind in kinds)


GPU_COUNT = Need("counts of GPU work", "", _has("gpu_count"))
GPU_TIME = Need("GPU time", "", _has("gpu_time"))
OF_KERNELS = Need(
    "GPU time, or kernels compiled for a GPU that is not there",
    "",
    lambda evidence: GPU_TIME.is_met(evidence) or evidence.is_for_target,
)
OWN_HOST_TIME = Need(
    "host time without exact counting of launches", "", lambda evidence: not evidence.profile.run.exact_launches
)
HOST_TIME = Need("host time", "", _has("host_time"))
IDLE = Need("what GPUs waited for", TRACE, lambda evidence: evidence.idle_ns is not None)
TIMELINE = Need("a timeline", TRACE, lambda evidence: evidence.has_timeline)
SAMPLES = Need("samples of instructions", "--sample", _has("num_samples"))
STEADY = Need("a steady state", "", lambda evidence: evidence.steady is not None)
OPERATORS = Need("operators", "", _kind(FrameKind.OPERATOR))
API_CALLS = Need("calls of the GPU's API", "--gpu-api", _calls_api)
AUTOGRAD = Need(
    "counts of autograd",
    "",
    lambda evidence: evidence.profile.run.autograd_nodes is not None or not _runs_torch(evidence.profile.tree.frames),
)
LAUNCHES = Need(
    "launch configurations", "", lambda evidence: bool(len(evidence.profile.kernels)) or evidence.is_for_target
)
LAUNCH_COUNT = Need(
    "how often it launches, and what GPUs waited for",
    TRACE,
    lambda evidence: evidence.idle_ns is not None and evidence.n_launches is not None,
)
TELEMETRY = Need(
    "telemetry of GPUs",
    "--telemetry",
    lambda evidence: any(gpu.reason_samples for gpu in evidence.telemetry.gpus) if evidence.telemetry else False,
)
MEMORY = Need(
    "memory of GPUs",
    "--memory",
    lambda evidence: bool(told.devices) if (told := gpu_memory_of(evidence.profile.meta)) else False,
)
TEXT = Need("the text of the program", "", lambda evidence: evidence.text.is_known)
CODE = Need("code of Triton kernels", "", _has_code)
