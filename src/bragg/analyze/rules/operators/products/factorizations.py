"""Matrices that are factored in each step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.analyze.rules.operators.calls.linear_algebra import parts_of_factors
from bragg.analyze.rules.operators.products.inverses import inverted
from bragg.analyze.rules.operators.products.log_determinants import of_log_determinants
from bragg.grouping.hlo_names import BANDED, TRIANGULAR, VECTORS_UNUSED
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "repeated-factorization",
    "matrices are factored in each step",
    "if a matrix stays the same: factor it once (torch.linalg.lu_factor, cholesky; jax.scipy.linalg.lu_factor, "
    "cho_factor), and solve with the factors; for a norm or a few values: torch.lobpcg, svd_lowrank",
    0.7,  # what is left is solving
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.15,
    is_launched=True,
)
_LOGARITHMS = replace(
    _WORK,
    what="a log-determinant is computed by eigenvalues, or by a factorization beside a Cholesky factor",
    change="a Cholesky factor has it: 2 * log(diagonal(cholesky(a))).sum(); where the program has the factor already, "
    "nothing else is factored",
    saved=0.9,
)
_LEAST_SQUARES = replace(
    _WORK,
    what="least squares are solved by singular values, as jnp.linalg.lstsq does",
    change="where no column depends on the others: normal equations, cho_solve(cho_factor(a.T @ a), a.T @ b), or QR if "
    "these lose too many digits",
    saved=0.9,
)
_OF_OTHERS = (VECTORS_UNUSED, BANDED, TRIANGULAR)  # rules of their own
# Operators of PyTorch, and operations of JAX.
_FACTORS = re.compile(
    r"aten::(?:linalg_(?:solve(?:_ex)?|_?solve_ex|lu_factor(?:_ex)?|lu|cholesky(?:_ex)?|qr|_?eigh|_?svd|eig|eigvalsh?|"
    r"svdvals|pinv|slogdet|det|matrix_exp|matrix_rank|cond|lstsq)|cholesky|lstsq|svd|logdet|slogdet|det|pinverse)|"
    r"lu|cholesky|householder_product|geqrf|eigh|svd"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree = evidence.profile, evidence.profile.tree
    factors = named(profile, _FACTORS.fullmatch) & (tree.kind == FrameKind.OPERATOR)
    # Other operators, as an inverse, factor too: they are not the program's own factorization.
    own = factors & ((evidence.callers.line > 0) | (tree.frames.line[tree.frame] > 0)) & ~inverted(profile)
    own &= ~below(profile, named(profile, _OF_OTHERS.__contains__)) & ~parts_of_factors(evidence)
    kinds = (
        (below(profile, of_log_determinants(evidence, own)), _LOGARITHMS),
        (below(profile, own & below(profile, named(profile, "_lstsq".__eq__))), _LEAST_SQUARES),
    )
    for nodes, work in kinds:
        yield from work_findings(evidence, nodes, work)
        own &= ~nodes
    yield from work_findings(evidence, below(profile, own), _WORK)


RULE = Rule(_find, "matrices that are factored in each step", (GPU_TIME,), (), _WORK.change, host_time=HostTime.CAUSE)
