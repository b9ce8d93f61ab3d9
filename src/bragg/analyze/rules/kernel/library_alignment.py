"""Matrix products of libraries whose operands are not aligned to 16 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import MUCH_GPU, WIDE_ACCESS
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding
from bragg.model.kernels.library_names import LibraryKernel, library_kernel

_BYTES = {"bf16": 2, "f16": 2, "tf32": 4, "f8": 1}
# What NVIDIA's guide to performance of matrix products shows for sizes that are no multiples of 16 bytes.
_SAVED = 0.4
# Odd sizes in 16 bits leave kernels for GPUs before Ampere: the product of our pair took 4.38 ms and 0.56 on an H200.
_SAVED_ODD = 0.85
_OF_VOCABULARY = " (a vocabulary of 50,257 to 50,304)"
_WORK = Work(
    "unaligned-matmul",
    "matrix products on tensor cores whose operands are not aligned to 16 bytes",
    "pad dimensions to multiples of 8 in 16 bits, of 4 in 32 bits",
    _SAVED,
    Confidence.LIKELY,
)


def _is_unaligned(name: str) -> bool:
    kernel = library_kernel(name)
    return kernel is not None and align_bytes(kernel) < WIDE_ACCESS.value


def _is_odd(name: str) -> bool:
    kernel = library_kernel(name)
    return kernel is not None and align_bytes(kernel) == _BYTES["f16"]


def align_bytes(kernel: LibraryKernel) -> float:
    """Bytes at whose multiples rows begin; infinite: the name does not say."""
    size = _BYTES.get(kernel.operand)
    return kernel.align * size if kernel.has_tensor_cores and kernel.align and size else float("inf")


def _find(evidence: Evidence) -> Iterator[Finding]:
    unaligned, gpu_ns = named(evidence.profile, _is_unaligned), evidence.gpu_ns
    odd = float(gpu_ns[named(evidence.profile, _is_odd)].sum())
    share = odd / float(gpu_ns[unaligned].sum()) if odd else 0.0
    saved = _SAVED + (_SAVED_ODD - _SAVED) * share
    has_vocabulary = bool(named(evidence.profile, "aten::embedding".__eq__).any())
    change = f"{_WORK.change}{_OF_VOCABULARY if has_vocabulary else ''}"
    yield from work_findings(evidence, unaligned, replace(_WORK, saved=saved, change=change))


RULE = Rule(
    _find,
    "matrix products of libraries whose operands are not aligned to 16 bytes",
    (GPU_TIME,),
    (MUCH_GPU, WIDE_ACCESS),
    _WORK.change,
)
