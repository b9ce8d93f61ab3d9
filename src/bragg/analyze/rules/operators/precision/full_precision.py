"""Matrix products in 32-bit floating point that tensor cores could do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.text.text_calls import lines_of
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding

# Measured on an H100: products of 4096 take 0.18 of the time in TF32.
_WORK = Work(
    "full-precision-matmul",
    "matrix products in 32-bit floating point without tensor cores",
    'torch.set_float32_matmul_precision("high") (TF32), or torch.autocast in bfloat16, if the precision is enough; '
    'JAX: without precision="highest"',
    0.75,
    Confidence.LIKELY,
)
_FULL = re.compile(r"sgemm|_s?gemm_f32f32_f32f32_f32|f32f32_f32f32.*ffma|simt_sgemm|_ffma_")
_TENSOR_CORES = re.compile(r"tf32|tensorop|hmma|wgmma|_h_bz|bf16|f16")

_SWITCH = re.compile(
    r"allow_tf32 = False|set_float32_matmul_precision\('highest'\)|fp32_precision = 'ieee'"
    r"|default_matmul_precision\b|\bprecision=.*(?:HIGHEST|'highest'|'float32')"  # JAX multiplies in TF32 otherwise
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    nodes = named(evidence.profile, lambda name: _FULL.search(name) and not _TENSOR_CORES.search(name))
    switches = lines_of(evidence, _SWITCH)
    for finding in work_findings(evidence, nodes, _WORK):
        yield moved_to(finding, switches)


RULE = Rule(
    _find,
    "matrix products in 32-bit floating point without tensor cores",
    (GPU_TIME,),
    (MUCH_GPU,),
    _WORK.change,
    costs_precision=True,
)
