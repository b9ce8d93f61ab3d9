"""Sorts and inverses of which less would be enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.stepped import stepped

LINE, NEXT = "train.py:8@main", "train.py:9@main"
OTHERS = ("train.py:14@main", "train.py:9@other")
SORT = "aten::sort#operator > aten::sort#operator > DeviceSegmentedRadixSortKernel#kernel"
INVERSE = "aten::linalg_inv#operator > aten::linalg_inv_ex#operator > getri#kernel"
FACTORS = "aten::linalg_inv#operator > aten::linalg_lu_factor_ex#operator > getrf#kernel"
PRODUCT = "aten::matmul#operator > aten::bmm#operator > gemm#kernel"
SLICE = "aten::slice#operator"


def found(rule: str, work: str, *paths: str) -> list[Finding]:
    """Of a program whose GPU does some work for 400 us, and other things for 400 more, in each step."""
    calls = "\n".join(f"host {20 + at}-{21 + at} {path}" for at, path in enumerate(paths))
    work_us = f"gpu 100-500 {work}\ngpu 500-900 train.py:20@main > aten::mm#operator > gemm#kernel"
    return analysis(Evidence(stepped(f"host 0-10 train.py:2@main\n{calls}\n{work_us}", 1000)), [rule]).findings


@pytest.mark.parametrize(
    ("rule", "work", "use", "saved"),
    [
        ("partial-sort", SORT, SLICE, 0.7),
        ("explicit-inverse", INVERSE, PRODUCT, 0.5),
        ("explicit-inverse", FACTORS, PRODUCT, 0.0),  # solving needs them, too
    ],
)
def test_what_the_next_lines_of_the_function_do_with_it_decides(rule: str, work: str, use: str, saved: float) -> None:
    call = use.removesuffix(" > gemm#kernel")
    for line in (LINE, NEXT, f"{NEXT} > /lib/torch/functional.py:5@einsum"):
        (finding,) = found(rule, f"{LINE} > {work}", f"{line} > {call}")
        assert (finding.rule, finding.file, finding.line) == (rule, "train.py", 8)
        assert ": 1 launch a step, 50 % of the GPU time" in finding.message
        assert finding.gain is not None
        assert finding.gain.share == pytest.approx(0.4 * saved, abs=0.01)
    assert found(rule, f"{LINE} > {work}") == []
    for line in OTHERS:
        assert found(rule, f"{LINE} > {work}", f"{line} > {call}") == []


def test_a_sort_within_another_operator_is_not_the_program_s_own() -> None:
    unique = f"{LINE} > aten::unique#operator > {SORT}"
    assert found("partial-sort", unique, f"{LINE} > {SLICE}") == []


def test_inverses_of_jax_are_found_and_are_no_factorization_of_the_program() -> None:
    profile = stepped(
        "host 0-10 train.py:8@main > jit(fit)#operator\n"
        "gpu 20-420 train.py:8@main > jit(fit)#operator > inv > solve > lu#operator > getrf#kernel\n"
        "gpu 420-820 train.py:8@main > jit(fit)#operator > dot_general#operator > gemm#kernel",
        1000,
    )
    assert [each.rule for each in analysis(Evidence(profile), ["explicit-inverse"]).findings] == ["explicit-inverse"]
    frames = profile.tree.frames
    frames.file[frames.name.index("lu")], frames.line[frames.name.index("lu")] = "train.py", 5
    assert analysis(Evidence(profile), ["repeated-factorization"]).findings == []


LIKELIHOOD = """def likelihood(d, y):
    k = covariance(d)
    chol = jnp.linalg.cholesky(k)
    return log_determinant(k), solve_triangular(chol, y)
def log_determinant(k):
    {}
    {}
"""


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("return jnp.sum(jnp.log(jnp.linalg.eigvalsh(k)))", True),
        ("return torch.linalg.eigvalsh(k).log().sum()", True),
        ("w = jnp.linalg.eigvalsh(k)\n    return jnp.log(jnp.maximum(w, 1e-9)).sum()", True),
        ("w = jnp.linalg.eigvalsh(k)\n    return jnp.log(w).sum() + w.min()", False),
        ("w = jnp.linalg.eigvalsh(k)\n    return w.sum()", False),
        ("return jnp.log(jnp.linalg.eigvalsh(k))", False),
        ("return jnp.linalg.slogdet(k)[1]", True),
        ("return k.logdet()", True),
        ("return jnp.linalg.slogdet(other)[1]", False),  # of a matrix that has no Cholesky factor
    ],
)
def test_a_log_determinant_is_told_to_come_from_a_cholesky_factor(text: str, is_told: bool) -> None:
    first, second = [*text.split("\n    "), "pass"][:2]
    call = "train.py:20@main > jit(likelihood)#operator"
    profile = stepped(f"host 0-10 {call}\ngpu 20-820 {call} > eigvalsh > eigh#operator > sytrd#kernel", 1000)
    frames = profile.tree.frames
    frames.file[frames.name.index("eigh")], frames.line[frames.name.index("eigh")] = "train.py", 6
    program = replace(profile, sources={"train.py": LIKELIHOOD.format(first, second)})
    (finding,) = analysis(Evidence(program), ["repeated-factorization"]).findings
    assert (finding.file, finding.line) == ("train.py", 6)
    assert ("2 * log(diagonal(cholesky(a))).sum()" in finding.hint) is is_told
    assert finding.message.startswith("a log-determinant" if is_told else "matrices are factored in each step")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.8 * (0.9 if is_told else 0.7), abs=0.01)
