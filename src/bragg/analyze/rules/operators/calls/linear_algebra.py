"""Calls of linear algebra that compute more than is used."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import below
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.repeated_values import is_copied, made_by
from bragg.analyze.causes.text.text_calls import argument, calls_at, operands
from bragg.analyze.causes.text.uses import is_only_for
from bragg.analyze.rules.operators.calls.kinds import Call, products
from bragg.code.python_nodes import parts_of, walk
from bragg.model.table import BoolArray


def parts_of_factors(evidence: Evidence) -> BoolArray:
    """Decompositions that compute more than is used: [n_nodes]."""
    found = [kind.found(evidence) for kind in ALGEBRA]
    return below(evidence.profile, np.logical_or.reduce(found))


def _is_unread(*kept: str) -> Callable[[FileText, ast.stmt], bool]:
    """Whether of the parts that a decomposition returns only some are read: `_, s, _ = torch.linalg.svd(x)`."""

    def is_meant(file: FileText, statement: ast.stmt) -> bool:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Tuple):
            return False
        names = [each.id if isinstance(each, ast.Name) else "" for each in statement.targets[0].elts]
        return len(names) == len(kept) and all(
            (name in _read(file, statement)) == (part == "read") for name, part in zip(names, kept, strict=True)
        )

    return is_meant


def _read(file: FileText, statement: ast.stmt) -> set[str]:
    inside = parts_of(file.function_of(statement), ast.Name)
    return {each.id for each in inside if isinstance(each.ctx, ast.Load)}


def _is_of_first_vectors(file: FileText, statement: ast.stmt) -> bool:
    """Whether of square matrices of singular vectors the first few are read: `u[:, :k]`, `vh[:k]`."""
    targets = statement.targets[0] if isinstance(statement, ast.Assign) else None
    made = [each for each in calls_at(statement, "svd") if ast.unparse(each.func).endswith("linalg.svd")]
    if not isinstance(targets, ast.Tuple) or len(targets.elts) != 3 or not made:
        return False
    asked = argument(made[0], "full_matrices", 1)
    if asked is not None and ast.unparse(asked) != "True":
        return False
    vectors = {each.id for each in (targets.elts[0], targets.elts[2]) if isinstance(each, ast.Name)}
    inside = [each for each in parts_of(file.function_of(statement), ast.Name) if each.id in vectors]
    reads = [each for each in inside if isinstance(each.ctx, ast.Load)]
    return bool(reads) and all(_takes_first(file.parents[each]) for each in reads)


def _takes_first(part: ast.AST) -> bool:
    places = walk(part.slice) if isinstance(part, ast.Subscript) else ()
    return any(isinstance(each, ast.Slice) and each.lower is None and each.upper is not None for each in places)


def _is_of_triangle(file: FileText, statement: ast.stmt) -> bool:
    """Whether a general solver gets a Cholesky factor: `torch.linalg.solve(lower, b)`."""
    return any(
        call_name(made) in ("cholesky", "cholesky_ex") and not isinstance(file.parents.get(made), ast.keyword)
        for each in calls_at(statement, "solve", "lu_factor", "lu_solve")
        for factor in each.args[:1]
        for made in file.makers(factor)
        if isinstance(made, ast.Call)
    )


def _is_of_copies(file: FileText, statement: ast.stmt) -> bool:
    """Whether one matrix is factored for each row of a batch: `torch.linalg.cholesky(a.expand(n, -1, -1))`."""
    calls = calls_at(statement, "cholesky", "cholesky_ex", "solve", "inv", "eigh", "svd", "qr", "lu_factor", "det")
    return any(is_copied(file, factor) for each in calls for factor in operands(each))


def _is_pseudoinverse_of_one(_: FileText, statement: ast.stmt) -> bool:
    """Whether a pseudoinverse is made for one product: `torch.linalg.pinv(a) @ b`."""
    return any(call_name(each.left) in ("pinv", "pinverse") for each in products(statement))


def _is_largest_alone(file: FileText, statement: ast.stmt) -> bool:
    """Whether the largest singular value is all that is meant: `torch.linalg.matrix_norm(w, 2)`, `svdvals(w)[0]`."""
    norms = [*calls_at(statement, "matrix_norm"), *calls_at(statement, "norm")]
    orders = [argument(each, "ord", len(operands(each)) if _is_of_library(each) else 0) for each in norms]
    if any(isinstance(each, ast.Constant) and each.value == 2 for each in orders):
        return True
    return is_only_for(file, statement, calls_at(statement, "svdvals"), lambda _, part: _is_first(part))


def _is_of_library(call: ast.Call) -> bool:
    return ast.unparse(call.func).startswith(("torch.", "linalg.", "LA."))


def _is_first(part: ast.AST) -> bool:
    """Whether it takes the first or the largest: `s[0]`, `s[..., 0]`, `s.max()`."""
    if isinstance(part, ast.Subscript):
        return ast.unparse(part.slice) in ("0", "(..., 0)", "(:, 0)")
    return isinstance(part, ast.Attribute) and part.attr in ("max", "amax")


def _is_of_diagonal(file: FileText, statement: ast.stmt) -> bool:
    """Whether a matrix is factored that has values on its diagonal alone: `MultivariateNormal(m, diag_embed(v))`."""
    calls = calls_at(statement, "MultivariateNormal", "cholesky", "solve", "inv", "slogdet", "logdet", "det")
    values = [value for each in calls for value in (*operands(each), *each.args)]
    values += [word.value for each in calls for word in each.keywords]
    stored = list(parts_of(file.function_of(statement), ast.Subscript))
    written = {call_name(each.value) for each in stored if isinstance(each.ctx, ast.Store)}
    made = (made_by(file, each) for each in values if call_name(each) not in written)
    return any(isinstance(each, ast.Call) and call_name(each) in ("diag_embed", "diag") for each in made)


def _is_power_of_matrix(file: FileText, statement: ast.stmt) -> bool:
    """Whether a power of a matrix is made for a product: `torch.matrix_power(p, 8) @ x`."""
    return any(
        isinstance(made, ast.Call) and call_name(made) == "matrix_power"
        for each in products(statement)
        for made in file.makers(each.left)
    )


ALGEBRA = (
    Call(
        "singular vectors are computed, and the singular values alone are used",
        "torch.linalg.svdvals(x), or norms of other kinds",
        "linalg_svd|svd",
        _is_unread("", "read", ""),
        0.6,
    ),
    Call(
        "square matrices of singular vectors are computed, of which the first few are used",
        "torch.svd_lowrank(x, k) comes close to the first k with products; full_matrices=False alone saves little",
        "linalg_svd|svd",
        _is_of_first_vectors,
        0.7,
    ),
    Call(
        "eigenvectors are computed, and the eigenvalues alone are used",
        "torch.linalg.eigvalsh(x), eigvals(x)",
        "linalg_eigh|linalg_eig",
        _is_unread("read", ""),
        0.5,
    ),
    Call(
        "an orthogonal factor is computed, and the triangular one alone is used",
        'torch.linalg.qr(x, mode="r"), or the Cholesky factor of x.mT @ x',
        "linalg_qr|qr",
        _is_unread("", "read"),
        0.5,
    ),
    Call(
        "pseudoinverses are computed by singular values, for a product with one right side each",
        "torch.linalg.lstsq(a, b).solution: QR instead of singular values; or Cholesky of a.mT @ a where it is well "
        "conditioned",
        "linalg_pinv|pinverse",
        _is_pseudoinverse_of_one,
        0.7,
    ),
    Call(
        "a Cholesky factor, which is a triangle, is factored again by a general solver",
        "torch.cholesky_solve(b, lower), or torch.linalg.solve_triangular(lower, b, upper=False): nothing is factored",
        "linalg_solve|linalg_solve_ex|linalg_lu_factor|linalg_lu_solve",
        _is_of_triangle,
        0.7,
    ),
    Call(
        "one matrix is factored for each row of a batch, though it is the same for all",
        "factor it once, and solve with all right sides as its columns: solve_triangular(lower, x.mT, upper=False)",
        "linalg_cholesky|linalg_cholesky_ex|cholesky|linalg_solve|linalg_inv|linalg_eigh|linalg_svd|linalg_qr|"
        "linalg_lu_factor|linalg_det",
        _is_of_copies,
        0.9,
    ),
    Call(
        "all singular values are computed, of which the largest alone is used",
        "a few turns of power iteration, as torch.nn.utils.parametrizations.spectral_norm does: products with a vector",
        "linalg_matrix_norm|linalg_norm|linalg_svdvals",
        _is_largest_alone,
        0.8,
        inner="_?linalg_svd|linalg_svdvals|svd",
    ),
    Call(
        "a diagonal matrix is factored",
        "compute with its diagonal: Independent(Normal(mean, std), 1) of torch.distributions; x / d in place of solve",
        "linalg_cholesky|linalg_cholesky_ex|cholesky|linalg_solve|linalg_inv|linalg_slogdet|linalg_solve_triangular",
        _is_of_diagonal,
        0.9,
    ),
    Call(
        "a power of a matrix is made, and multiplied with few columns",
        "multiply the columns as often as the power says, if they are few: for _ in range(n): x = p @ x",
        "matrix_power|linalg_matrix_power",
        _is_power_of_matrix,
        0.8,
    ),
)
