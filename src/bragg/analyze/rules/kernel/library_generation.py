"""Matrix products of libraries by kernels of an older generation than the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.kernel_class import class_of
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import MUCH_GPU, WIDE_ACCESS
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.analyze.rules.kernel.library_alignment import align_bytes
from bragg.model import Confidence, Finding, Profile
from bragg.model.kernels.library_names import library_kernel
from bragg.model.table import BoolArray

_HOPPER = 90
_WORK = Work(
    "old-library-kernel",
    "matrix products on tensor cores by kernels that were written for GPUs before this one",
    "newer versions of cuBLAS and cuDNN; larger products (a bigger batch), in bfloat16 rather than TF32",
    0.2,
    Confidence.HEURISTIC,
)


def _is_old(name: str) -> bool:
    kernel = library_kernel(name)
    if kernel is None or not kernel.has_tensor_cores or not kernel.generation.isdecimal():
        return False
    if class_of(name) == "attention":
        return False  # which kernel attends one token is not a matter of age
    return int(kernel.generation) < _HOPPER and align_bytes(kernel) >= WIDE_ACCESS.value


def _find(evidence: Evidence) -> Iterator[Finding]:
    nodes = named(evidence.profile, _is_old) & _on_hopper(evidence.profile)
    yield from work_findings(evidence, nodes, _WORK)


def _on_hopper(profile: Profile) -> BoolArray:
    """Which nodes are of GPUs from sm_90 on: [n_nodes]."""
    device = profile.tree.frames.device
    new = [ordinal for ordinal in np.unique(device[device >= 0]).tolist() if _is_new(profile, ordinal)]
    found: BoolArray = np.isin(device, new)[profile.tree.frame]
    return found


def _is_new(profile: Profile, ordinal: int) -> bool:
    records: list[Mapping[str, Any]] = profile.run.records_of_device(ordinal)
    archs = {str(record.get("arch", "")) for record in records}
    return bool(archs) and all(arch.isdecimal() and int(arch) >= _HOPPER for arch in archs)


RULE = Rule(
    _find,
    "matrix products of libraries, on GPUs from sm_90 on, by kernels of older ones",
    (GPU_TIME,),
    (MUCH_GPU,),
    _WORK.change,
)
