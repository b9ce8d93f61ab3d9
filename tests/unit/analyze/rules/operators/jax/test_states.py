"""What compiled programs of JAX say that they need not do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, FrameKind, Profile
from tests.support.stepped import stepped

CALL = "train.py:20@main > jit(step)#operator"


def ran(state: str, op: str, other_us: int = 200) -> Profile:
    """Steps of 200 us of work in a state, which line 9 asks for, and others."""
    work = f"{CALL} > {state}#state > {op}"
    rest = f"{CALL} > dot_general#operator > gemm#kernel"
    text = f"host 0-10 {CALL}\ngpu 20-220 {work}\ngpu 220-{220 + other_us} {rest}"
    profile = stepped(text, 230 + other_us)
    frames = profile.tree.frames
    at = frames.name.index(state)
    assert frames.kind[at] == FrameKind.STATE
    frames.file[at], frames.line[at] = "sea.py", 9
    return profile


def found(rule: str, profile: Profile) -> list[Finding]:
    return analysis(Evidence(profile), [rule]).findings


@pytest.mark.parametrize(
    ("rule", "state", "op", "saved"),
    [
        ("both-branches", "[both branches]", "while#operator > fusion#kernel", 0.8),
        ("complex-transform", "[complex transform of real values]", "fft#operator > regular_fft#kernel", 0.45),
        ("costly-product-order", "[costly order of products]", "dot_general#operator > gemm#kernel", 0.9),
        ("until-last", "[until the last has ended]", "while#operator > fusion#kernel", 0.5),
        ("zeros-and-ones", "[product with zeros and ones]", "dot_general#operator > gemm#kernel", 0.9),
        ("pairwise-sums", "[pairwise differences]", "reduce_sum#operator > input_reduce#kernel", 0.8),
        ("whole-hessian", "[whole hessian]", "mul#operator > fusion#kernel", 0.9),
        ("whole-jacobian", "[whole jacobian]", "mul#operator > fusion#kernel", 0.9),
        ("reverse-jacobian", "[jacobian in reverse mode]", "while#operator > fusion#kernel", 0.7),
        ("diagonal-matrix", "[product with a diagonal matrix]", "dot_general#operator > gemm#kernel", 0.9),
        ("banded-factor", "[product with a banded matrix]", "dot_general#operator > gemm#kernel", 0.5),
        ("outer-product", "[product with an outer product]", "dot_general#operator > gemm#kernel", 0.9),
        ("wide-filter", "[wide filter]", "conv_general_dilated#operator > conv#kernel", 0.7),
        ("complex-product", "[complex product of real values]", "dot_general#operator > gemm#kernel", 0.5),
        ("dense-gradient", "[gradient of a whole table]", "scatter-add#operator > fusion#kernel", 0.9),
        ("product-after-lookup", "[product of rows looked up]", "dot_general#operator > gemm#kernel", 0.7),
        ("overlapping-windows", "[overlapping windows]", "gather#operator > fusion#kernel", 0.8),
        ("column-lookup", "[columns of a table]", "gather#operator > fusion#kernel", 0.6),
        ("sort-of-places", "[sort of sorted places]", "sort#operator > sort#kernel", 0.7),
        ("shifted-history", "[shifted in each turn]", "concatenate#operator > fusion#kernel", 0.6),
        ("promoted-products", "[promoted to 32 bits]", "dot_general#operator > sgemm#kernel", 0.5),
        ("compared-pairs", "[comparisons of all pairs]", "reduce_sum#operator > fusion#kernel", 0.8),
        ("repeated-rows", "[product with repeated rows]", "dot_general#operator > gemm#kernel", 0.5),
        ("summed-products", "[product by a sum]", "reduce_sum#operator > fusion#kernel", 0.8),
        ("split-product", "[product of a sum]", "dot_general#operator > gemm#kernel", 0.9),
        ("same-in-each-turn", "[same in each turn]", "cholesky#operator > potrf#kernel", 0.9),
        ("forward-jacobian", "[jacobian in forward mode]", "while#operator > fusion#kernel", 0.7),
        ("evaluated-before", "[evaluated before]", "dot_general#operator > gemm#kernel", 1.0),
        ("same-arguments", "[from the same arguments] | cov", "dot_general#operator > gemm#kernel", 1.0),
        ("promoted-doubles", "[promoted to 64 bits]", "mul#operator > fusion#kernel", 0.5),
        ("sum-of-product", "[sum of a product]", "dot_general#operator > gemm#kernel", 0.8),
        ("matrix-per-row", "[matrices looked up]", "dot_general#operator > gemm#kernel", 0.9),
        ("banded-matrix", "[factorization of a banded matrix]", "lu#operator > getrf#kernel", 0.4),
        ("low-rank-matrix", "[factorization of a diagonal and few columns]", "cholesky#operator > potrf#kernel", 0.9),
        ("triangular-matrix", "[LU of a triangular matrix]", "lu#operator > getrf#kernel", 1.0),
        ("symmetric-matrix", "[LU of a symmetric matrix]", "lu#operator > getrf#kernel", 0.5),
        ("integer-product", "[product of integers]", "dot_general#operator > fusion#kernel", 0.8),
        ("part-of-shuffle", "[shuffled for a part]", "sort#operator > DeviceRadixSort#kernel", 0.95),
        ("late-projection", "[summed at full width]", "scatter-add#operator > input_scatter_fusion#kernel", 0.5),
        ("late-crop", "[cropped afterwards]", "dot_general#operator > gemm#kernel", 0.4),
        ("part-of-result", "[mostly unused]", "sort#operator > sort#kernel", 0.75),
        ("unused-vectors", "[unused vectors]", "svd#operator > gesvd#kernel", 0.5),
        ("constant-work", "[constant]", "iota#operator > fusion#kernel", 1.0),
    ],
)
def test_work_that_need_not_be_done_is_found_where_the_program_asks_for_it(
    rule: str, state: str, op: str, saved: float
) -> None:
    (finding,) = found(rule, ran(state, op))
    assert (finding.file, finding.line) == ("sea.py", 9)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(200 * saved / 430, abs=0.03)
    assert "1 launch a step, 50 % of the GPU time" in finding.message
    assert found(rule, ran(state, op, other_us=20_000)) == []


def test_64_bit_numbers_are_found_where_they_are_enabled() -> None:
    profile = ran("[64-bit numbers]", "mul#operator > fusion#kernel")
    text = 'import jax\n\njax.config.update("jax_enable_x64", True)\n'
    (finding,) = found("double-precision", replace(profile, sources={"train.py": text}))
    assert (finding.file, finding.line) == ("train.py", 3)
    assert [(each.file, each.line) for each in finding.places] == [("train.py", 20)]
    (finding,) = found("double-precision", replace(profile, sources={"train.py": text.replace("True", "False")}))
    assert finding.line == 20


def test_full_precision_is_found_where_it_is_asked_for() -> None:
    profile = stepped(
        f"host 0-10 {CALL}\ngpu 20-220 {CALL} > dot_general#operator > sm80_xmma_gemm_f32f32_f32f32_f32#kernel", 230
    )
    (finding,) = found("full-precision-matmul", profile)
    assert finding.line == 20
    text = 'import jax\njax.config.update("jax_default_matmul_precision", "highest")\n'
    (finding,) = found("full-precision-matmul", replace(profile, sources={"train.py": text}))
    assert finding.line == 2


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ('jax.config.update("jax_debug_nans", True)', True),
        ('os.environ["JAX_DISABLE_JIT"] = "1"', True),
        ('jax.config.update("jax_debug_nans", False)', False),
    ],
)
def test_settings_for_debugging_are_found_where_the_gpu_waits(line: str, is_told: bool) -> None:
    launched = f"host 0-500 {CALL} > cuLaunchKernel#gpu_api ->1\ngpu 510-530 {CALL} > gemm#kernel <-1"
    waiting = stepped(launched, 600)
    busy = stepped(f"host 0-5 {CALL}\ngpu 10-590 {CALL} > gemm#kernel", 600)
    told = [found("debug-settings", replace(each, sources={"train.py": f"\n{line}\n"})) for each in (waiting, busy)]
    assert [[each.line for each in findings] for findings in told] == [[2] * is_told, []]


@pytest.mark.parametrize(("work_us", "is_short"), [(15, True), (200, False)])
@pytest.mark.parametrize(
    ("rule", "state"),
    [("independent-turns", "[independent turns]"), ("product-in-loop", "[apart from the state]")],
)
def test_work_of_turns_that_could_be_done_at_once_is_found_while_it_is_short(
    rule: str, state: str, work_us: int, is_short: bool
) -> None:
    work = f"{CALL} > {state}#state > while#operator > dot_general#operator > gemm#kernel"
    profile = stepped(f"host 0-10 {CALL}\ngpu 20-{20 + work_us} {work}", 30 + work_us)
    assert [each.rule for each in found(rule, profile)] == [rule] * is_short


def test_copied_arguments_are_found_where_the_function_is_jitted() -> None:
    profile = ran("[copied argument] memory", "copy.2#operator > copy DtoD#memory")
    (finding,) = found("undonated-argument", profile)
    assert (finding.file, finding.line) == ("sea.py", 9)
    made = {"jit(step)": {"made at train.py:3": "jit"}}
    (finding,) = found("undonated-argument", replace(profile, meta={**profile.meta, "attributes": made}))
    assert (finding.file, finding.line) == ("train.py", 3)
    assert ("sea.py", 9) in {(each.file, each.line) for each in finding.places}
    made["jit(step)"]["made at train.py:5"] = "jit"  # two of that name
    (finding,) = found("undonated-argument", replace(profile, meta={**profile.meta, "attributes": made}))
    assert (finding.file, finding.line) == ("sea.py", 9)


@pytest.mark.parametrize(("state", "is_other"), [("[LU of a triangular matrix]", True), ("[64-bit numbers]", False)])
def test_matrices_whose_form_allows_for_less_are_not_told_to_be_factored_once(state: str, is_other: bool) -> None:
    profile = ran(state, "lu#operator > getrf#kernel")
    frames = profile.tree.frames
    frames.line[frames.name.index("lu")] = 12
    assert bool(found("repeated-factorization", profile)) is not is_other


@pytest.mark.parametrize(("turns", "is_told"), [(64, True), (65, True), (40, False), (128, False)])
def test_loops_are_told_that_take_all_turns_in_each_call(turns: int, is_told: bool) -> None:
    state = "[until a tolerance or a limit] 64"
    work = f"{CALL} > {state}#state > while#operator > div#operator > fusion#kernel"
    text = "\n".join(f"gpu {at}-{at + 2} {work}" for at in range(13, 10 + 3 * turns, 3))
    once = f"{CALL} > {state}#state > while#operator > copy.1#operator > copy DtoD#memory"
    text += f"\ngpu 10-12 {work}\ngpu {13 + 3 * turns}-{14 + 3 * turns} {once}"
    profile = stepped(f"host 0-9 {CALL}\n{text}", 20 + 3 * turns)
    at = profile.tree.frames.name.index(state)
    profile.tree.frames.file[at], profile.tree.frames.line[at] = "sea.py", 9
    told = found("unreached-tolerance", profile)
    assert [(each.file, each.line) for each in told] == [("sea.py", 9)] * is_told
    assert len(found("short-turns", profile)) == (not is_told)
    shares = [each.gain.share for each in told if each.gain]
    assert shares == [pytest.approx(0.8 * 2 * turns / (20 + 3 * turns), abs=0.03)] * is_told


def test_least_squares_by_singular_values_are_told_as_such() -> None:
    call = "train.py:20@main > jit(fit)#operator"
    for inner, what in (("_lstsq > svd", "least squares are solved by"), ("svd", "matrices are factored in each")):
        work = f"gpu 20-320 {call} > {inner}#operator > batched_svd#kernel\ngpu 320-400 {call} > gemm#kernel"
        profile = stepped(f"host 0-10 {call}\n{work}", 420)
        profile.tree.frames.line[[name == "svd" for name in profile.tree.frames.name]] = 9
        (told,) = found("repeated-factorization", profile)
        assert told.message.startswith(what)
