"""Factorizations in jitted functions of JAX of matrices whose form allows for less."""

from __future__ import annotations

from bragg.analyze.causes.work_finding import Work
from bragg.analyze.rules.operators.jax.state_rule import state_rule
from bragg.grouping.hlo_names import BANDED, LOW_RANK, SYMMETRIC, TRIANGULAR
from bragg.model import Confidence

BANDS = state_rule(
    BANDED,
    "dense factorizations of JAX of matrices that are zero except near their diagonal",
    Work(
        "banded-matrix",
        "a matrix that is zero except near its diagonal is factored as a dense one",
        "jax.lax.linalg.tridiagonal_solve takes three diagonals; of a diagonal matrix: divide by its diagonal",
        0.4,  # 31 % of the GPU time for 78 % that factor (1024 rows, 256 right-hand sides); 98 % of 2048 rows with 8
        Confidence.HEURISTIC,
        is_launched=True,
    ),
)
RANKS = state_rule(
    LOW_RANK,
    "factorizations of JAX of a diagonal matrix and a product over few columns",
    Work(
        "low-rank-matrix",
        "a diagonal matrix and a product over few columns, diag(d) + u @ u.T, are factored as one large matrix",
        "factor the small matrix eye(k) + u.T @ (u / d[:, None]) of these k columns instead, for solutions (Woodbury's "
        "formula) and determinants; ridge regression: solve with x.T @ x instead of x @ x.T",
        0.9,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
TRIANGLES = state_rule(
    TRIANGULAR,
    "LU factorizations of JAX of triangular matrices",
    Work(
        "triangular-matrix",
        "a matrix that is triangular already is factored (jnp.linalg.solve, inv)",
        "jax.scipy.linalg.solve_triangular(a, b, lower=...)",
        1.0,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
SQUARES = state_rule(
    SYMMETRIC,
    "LU factorizations of JAX of symmetric matrices",
    Work(
        "symmetric-matrix",
        "a product of a matrix with itself, which is symmetric, is factored by LU (jnp.linalg.solve, inv)",
        "Cholesky has half of the operations, and no pivots: jax.scipy.linalg.cho_solve(cho_factor(a), b)",
        0.5,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
