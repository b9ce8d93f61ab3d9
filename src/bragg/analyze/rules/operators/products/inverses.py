"""Inverses of matrices that are only multiplied with something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.whole_gain import whole_gain
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind, Profile
from bragg.model.table import BoolArray

_WORK = Work(
    "explicit-inverse",
    "inverses of matrices, which are then multiplied with something",
    "linalg.solve(a, b) instead of inv(a) @ b: less work, and more exact; lu_factor and lu_solve for many b; for "
    "covariances and other positive definite matrices cholesky and cholesky_solve (JAX: cho_factor, cho_solve)",
    0.5,
    Confidence.HEURISTIC,
    is_launched=True,
)
_INVERTS = re.compile(r"aten::(?:linalg_inv|inverse)")
_FACTORS = re.compile(r"aten::linalg_lu_factor(?:_ex)?")  # which solving needs, too
_MULTIPLIES = re.compile(r"aten::(?:matmul|mm|bmm|mv|baddbmm|addmm|einsum)")


def inverted(profile: Profile) -> BoolArray:
    """What JAX computes for the inverse of a matrix: [n_nodes]."""
    return below(profile, named(profile, "inv".__eq__) & (profile.tree.kind == FrameKind.SCOPE))


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    inverts = named(profile, _INVERTS.fullmatch)
    nodes = below(profile, evidence.callers.near(inverts, named(profile, _MULTIPLIES.fullmatch))) | inverted(profile)
    gain = whole_gain(evidence, nodes & ~below(profile, named(profile, _FACTORS.fullmatch)), _WORK.saved)
    for finding in work_findings(evidence, nodes, _WORK):
        yield replace(finding, gain=gain)


RULE = Rule(_find, "inverses that are multiplied", (GPU_TIME,), (MUCH_GPU,), _WORK.change, host_time=HostTime.CAUSE)
