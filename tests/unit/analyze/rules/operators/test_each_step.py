"""What each step computes though less would do: parts of products, tables, factorizations, loops of JAX."""

from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from tests.support.stepped import stepped

HEAD, TAKE, OTHER = "train.py:8@forward > aten::linear#operator", "aten::select#operator", "train.py:20@main"
CALL = "train.py:20@main > jit(step)#operator"


def ran(*calls: tuple[str, int, str], n: int = 1) -> Profile:
    """Calls of operators of 2 us, each with a kernel that lasts so long if it has one, n times in each step."""
    lines, at = [], 0
    for path, lasts, kernel in calls * n:
        lines.append(f"host {at}-{at + 2} {path} ->{at + 1}")
        lines += [f"gpu {at + 3}-{at + 3 + lasts} {path} > {kernel}#kernel <-{at + 1}"] if kernel else []
        at += lasts + 5
    return stepped("\n".join(lines), at + 50)


def found(rule: str, profile: Profile) -> list[Finding]:
    return analysis(Evidence(profile), [rule]).findings


@pytest.mark.parametrize(
    ("calls", "n_found"),
    [
        ([(HEAD, 200, "gemm"), (f"train.py:8@forward > {TAKE}", 0, "")], 1),
        ([(HEAD, 200, "gemm"), (f"train.py:9@forward > {TAKE}", 0, "")], 1),
        ([(HEAD, 100, "gemm"), (HEAD, 100, "gemm"), ("train.py:8@forward > aten::diag#operator", 0, "")], 1),
        ([(HEAD, 200, "gemm"), *[(f"train.py:9@forward > {TAKE}", 0, "")] * 3], 0),  # all parts of it
        ([(HEAD, 200, "gemm"), ("train.py:9@other > " + TAKE, 0, "")], 0),
        ([(HEAD, 5, "gemm"), (f"train.py:8@forward > {TAKE}", 0, "")], 0),  # of one row
    ],
)
def test_a_product_of_which_one_row_is_taken_is_found_if_it_is_long(
    calls: list[tuple[str, int, str]], n_found: int
) -> None:
    rest = (f"{OTHER} > aten::mm#operator", 100, "gemm")
    assert [each.line for each in found("part-of-product", ran(*calls, rest))] == [8] * n_found


def test_what_follows_from_arange_is_found_at_the_line_that_takes_longest() -> None:
    counts = ("train.py:5@alibi > aten::arange#operator", 2, "arange")
    gap = ("train.py:6@alibi > aten::sub#operator", 50, "sub")
    scores = ("train.py:12@alibi > aten::mul#operator", 200, "mul")
    (finding,) = found("rebuilt-table", ran(counts, gap, scores))
    assert finding.line == 6
    assert "2 launches a step, 21 % of the GPU time" in finding.message
    assert found("rebuilt-table", ran(gap, scores)) == []
    before = ("train.py:4@alibi > aten::div#operator", 50, "div")  # cannot follow from it
    (finding,) = found("rebuilt-table", ran(before, counts, gap, scores))
    assert "2 launches a step" in finding.message


@pytest.mark.parametrize(
    ("path", "n_found"),
    [
        ("train.py:8@main > aten::linalg_solve#operator", 1),
        ("train.py:8@main > aten::linalg_svdvals#operator > aten::_linalg_svd#operator", 1),
        ("train.py:8@main > aten::linalg_inv#operator > aten::linalg_lu_factor_ex#operator", 0),  # a rule of its own
    ],
)
def test_a_factorization_in_each_step_is_found(path: str, n_found: int) -> None:
    assert len(found("repeated-factorization", ran((path, 100, "getrf")))) == n_found


UNSQUEEZE = "train.py:8@gram > aten::unsqueeze#operator"


@pytest.mark.parametrize(("n_new", "n_found"), [(2, 1), (1, 0)], ids=["pairs", "a mask"])
def test_a_sum_of_products_of_all_pairs_is_found(n_new: int, n_found: int) -> None:
    calls = [(UNSQUEEZE, 0, "")] * n_new
    calls += [("train.py:8@gram > aten::mul#operator", 100, "mul"), ("train.py:9@gram > aten::sum#operator", 50, "sum")]
    assert [each.line for each in found("broadcast-product", ran(*calls))] == [8] * n_found


@pytest.mark.parametrize(("passes", "n_found"), [(2, 1), (1, 0)])
def test_a_second_backward_pass_over_the_same_forward_pass_is_found(passes: int, n_found: int) -> None:
    multiplies = "train.py:5@step > aten::mm#operator"
    goes_back = (f"{multiplies} > [backward]#state > MmBackward0#operator", 100, "gemm")
    calls = [(multiplies, 50, "gemm"), *[goes_back, (f"{multiplies} > [backward]#state", 0, "")] * passes]
    twice = found("repeated-backward", ran(*calls))
    assert len(twice) == n_found
    if twice:
        assert twice[0].message.startswith("the backward pass runs 2 times over each forward pass: 19 calls of ")
        assert twice[0].gain is not None
        assert twice[0].gain.share == pytest.approx(0.33, abs=0.01)  # half of 200 us and their waits, of 345 us


def looped(turns: int, us: int, path: str) -> Profile:
    """A jitted function whose loop runs so many kernels."""
    kernels = "\n".join(
        f"gpu {20 + at * us}-{20 + at * us + us} {CALL} > while#operator > {path}" for at in range(turns)
    )
    return stepped(f"host 0-10 {CALL}\n{kernels}", 40 + turns * us)


@pytest.mark.parametrize(("turns", "us", "n_found"), [(64, 3, 1), (16, 3, 0), (64, 30, 0)])
def test_a_loop_of_jax_with_many_short_turns_is_found(turns: int, us: int, n_found: int) -> None:
    profile = looped(turns, us, "sin#operator > loop_sine_fusion#kernel")
    assert len(found("short-turns", profile)) == n_found
    assert found("loop-outputs", profile) == []


@pytest.mark.parametrize(("turns", "compiles_us", "n_found"), [(120, 900, 1), (20, 900, 0), (120, 10, 0)])
def test_a_loop_of_python_in_a_jitted_function_is_found_where_compiling_takes_long(
    turns: int, compiles_us: int, n_found: int
) -> None:
    product = f"{CALL} > dot_general#operator > gemm_fusion#kernel"
    compiles = f"host 0-{compiles_us} {CALL} > [compile] jit_step"
    starts = range(compiles_us + 2, compiles_us + 2 + 2 * turns, 2)
    kernels = "\n".join(f"gpu {at}-{at + 1} {product} <-{at}" for at in starts)
    call = "\n".join(f"host {at - 1}-{at} {CALL} > launch#gpu_api ->{at}" for at in starts)
    call += f"\nhost {compiles_us}-{compiles_us + 2 * turns + 9} {CALL}"
    text = f"{call}\n{compiles}\n{kernels}"
    assert len(found("unrolled-loop", stepped(text, compiles_us + 2 * turns + 20))) == n_found
    nowhere = text.replace("train.py:20@main > ", "")
    assert found("unrolled-loop", stepped(nowhere, compiles_us + 2 * turns + 20)) == []


def test_outputs_of_each_turn_are_found() -> None:
    (finding,) = found("loop-outputs", looped(64, 30, "dynamic_update_slice#operator > copy DtoD#memory"))
    assert finding.message.startswith("a loop of JAX writes an output in each turn")


def test_products_around_a_softmax_of_xla_are_attention() -> None:
    line = "{} > dot_general#operator > gemm_fusion#kernel"
    softmax = f"{CALL} > div#operator > triton_softmax_1#kernel"
    works = [line.format(CALL), softmax, line.format(f"{CALL} > v")]
    text = "\n".join(f"gpu {20 + 30 * at}-{50 + 30 * at} {work}" for at, work in enumerate(works))
    profile = stepped(f"host 0-10 {CALL}\n{text}", 120)
    frames = profile.tree.frames
    for row, name in enumerate(frames.name):
        frames.line[row], frames.file[row] = (9, "model.py") if name in ("dot_general", "div") else (0, "")
    assert len(found("unfused-attention", profile)) == 1


def gradient(path: str, emptied: str) -> list[tuple[str, int, str]]:
    """A product in a module, with its backward and what becomes of the gradient of its parameter."""
    product = f"{path} > /x/site-packages/torch/nn/modules/module.py:3@_call > net.py:7@forward > aten::mm#operator"
    goes_back = f"{product} > [backward]#state"
    adds = f"{goes_back} > torch::autograd::AccumulateGrad#operator"
    return [
        (product, 50, "gemm"),
        (f"{goes_back} > MmBackward0#operator", 100, "gemm"),
        (adds, 0, ""),
        (f"{adds} > {emptied}#operator", 1, "add"),
    ]


TARGET, ONLINE = "train.py:20@main > train.py:12@goal", "train.py:20@main > train.py:15@learn"


@pytest.mark.parametrize(
    ("target", "of_target", "optimizers", "n_found"),
    [
        (TARGET, "aten::add_", 1, 1),
        (TARGET, "aten::detach", 1, 0),
        (TARGET, "aten::add_", 2, 0),
        (ONLINE.replace(":15@", ":12@"), "aten::add_", 2, 1),  # a generator before its critic
        (ONLINE.replace(":15@", ":16@"), "aten::add_", 2, 0),  # a critic behind its generator
    ],
)
def test_gradients_that_no_optimizer_empties_are_found_where_their_network_is_called(
    target: str, of_target: str, optimizers: int, n_found: int
) -> None:
    steps = [(f"train.py:{30 + at}@main > Optimizer.step#Adam.step#operator", 1, "adam") for at in range(optimizers)]
    calls = [*gradient(target, of_target), *gradient(ONLINE, "aten::detach"), *steps[optimizers % 2 :]]
    unread = found("unread-gradients", ran(*calls))
    assert [each.line for each in unread] == [12] * n_found
    if unread:
        assert unread[0].message.startswith(
            "50 % of the gradients are of parameters that no optimizer updates afterwards"
        )
        assert unread[0].gain is not None
        assert unread[0].gain.share == pytest.approx(0.28, abs=0.02)  # 101 us and the waits beside them, of 392 us


def test_a_line_that_also_calls_the_network_to_be_trained_is_not_where_gradients_are_left() -> None:
    sampled = "train.py:5@sample"
    calls = [*gradient(f"{TARGET} > {sampled}", "aten::add_"), *gradient(f"{ONLINE} > {sampled}", "aten::detach")]
    program = ran(*calls)
    frame, frames = program.tree.frame, program.tree.frames
    frame[frames.line[frame] == 5] = np.flatnonzero(frames.line == 5)[0]  # as a recording has it: one for a line
    (unread,) = found("unread-gradients", program)
    assert unread.line == 12


@pytest.mark.parametrize(("optimizers", "n_found"), [(1, 1), (2, 0)])
def test_one_line_may_call_what_is_trained_and_what_is_not(optimizers: int, n_found: int) -> None:
    line, module = "train.py:20@main > train.py:12@forward", " > /x/site-packages/torch/nn/modules/module.py:{}@_call"
    calls = [*gradient(line + module.format(4), "aten::add_"), *gradient(line + module.format(5), "aten::detach")]
    steps = [(f"train.py:{30 + at}@main > Optimizer.step#Adam.step#operator", 1, "adam") for at in range(optimizers)]
    calls += steps[optimizers % 2 :]
    program = ran(*calls)
    frame, frames = program.tree.frame, program.tree.frames
    for number in (7, 12, 20):  # as a recording has it: one for a line
        frame[frames.line[frame] == number] = np.flatnonzero(frames.line == number)[0]
    unread = found("unread-gradients", program)
    assert [each.line for each in unread] == [12] * n_found
    for each in unread:
        assert each.evidence[1].value == pytest.approx(
            101 / (302 + optimizers), abs=0.01
        )  # what is trained is not in it


def test_first_steps_that_fill_gradients_do_not_hide_that_others_add_to_them() -> None:
    begins = gradient(TARGET.replace(":20@", ":19@"), "aten::detach")
    calls = [*begins, *gradient(TARGET, "aten::add_") * 12, *gradient(ONLINE, "aten::detach") * 12]
    (unread,) = found("unread-gradients", ran(*calls))
    assert unread.line == 12
    assert unread.gain is not None
    assert unread.gain.share == pytest.approx(0.33, abs=0.03)


@pytest.mark.parametrize(
    ("above", "n_found"),
    [
        ("train.py:8@forward", 1),
        ("train.py:8@main > Optimizer.step#SparseAdam.step#operator", 0),  # of gradients, which are new
        ("train.py:8@main > aten::embedding#operator > [backward]#state", 0),
    ],
)
def test_sparse_matrices_that_each_step_coalesces_are_found(above: str, n_found: int) -> None:
    calls = [
        (f"{above} > aten::_coalesce#operator", 60, "sort"),
        (f"{OTHER} > aten::mul#operator", 40, "mul"),
    ]
    findings = found("repeated-coalescing", ran(*calls))
    assert [each.line for each in findings] == [8] * n_found
    for each in findings:
        assert each.evidence[1].value == pytest.approx(0.6)
