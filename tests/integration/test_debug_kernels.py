"""Whole kernels give what NumPy gives, and the checkers find nothing wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault

pytest.importorskip("triton")
ml_dtypes = pytest.importorskip("ml_dtypes")

from tests.support import triton_kernels as kernels  # noqa: E402


@pytest.fixture(autouse=True)
def checked() -> Iterator[Any]:
    """Every launch is checked, but for those in a block of the test's own; what is found fails the test."""
    with bragg.debug.check() as report:
        yield report
    assert not report.findings, "\n".join(report.lines())


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i4", "i8", "u1", ml_dtypes.bfloat16])
@pytest.mark.parametrize("n", [1, 255, 256, 1000])
def test_vector_add(dtype: Any, n: int, random: np.random.Generator) -> None:
    x, y = ((random.standard_normal(n) * 100).astype(dtype) for _ in range(2))
    out = np.zeros_like(x)
    kernels.add[(-(-n // 256),)](x, y, out, n, BLOCK=256)
    assert (out == x + y).all()


def test_softmax_of_rows_that_do_not_fill_a_block(random: np.random.Generator) -> None:
    x = random.standard_normal((100, 781)).astype("f4")
    out = np.zeros_like(x)
    kernels.softmax[(100,)](out, x, 781, 781, BLOCK=1024)
    expected = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, expected / expected.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f2", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("shape", [(64, 64, 64), (100, 70, 90)])
def test_matmul(dtype: Any, shape: tuple[int, int, int], random: np.random.Generator) -> None:
    m, n, k = shape
    a, b = random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)
    c = np.zeros((m, n), "f4")
    grid = (-(-m // 32) * -(-n // 32),)
    kernels.matmul[grid](a, b, c, m, n, k, k, 1, n, 1, n, 1, BM=32, BN=32, BK=32)
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_whose_programs_loop_a_different_number_of_times(
    is_causal: bool, random: np.random.Generator
) -> None:
    q, k, v = (random.standard_normal((2, 128, 32)).astype("f4") for _ in range(3))
    out = np.zeros_like(q)
    kernels.attention[(4, 2)](q, k, v, out, 0.25, 128, D=32, BM=32, BN=32, CAUSAL=is_causal)
    scores = q @ k.transpose(0, 2, 1) * 0.25
    if is_causal:
        scores = np.where(np.tril(np.ones((128, 128), bool)), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(out, p / p.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)


def test_gather_through_loaded_indices(random: np.random.Generator) -> None:
    x, index = random.standard_normal(1000).astype("f4"), random.integers(0, 1000, 1000).astype("i8")
    out = np.zeros_like(x)
    kernels.gather_rows[(8,)](x, index, out, 1000, BLOCK=128)
    assert (out == x[index]).all()


def test_programs_part_at_if_while_for_return_and_meet_again(random: np.random.Generator) -> None:
    x = random.standard_normal((50, 64)).astype("f4")
    out = np.zeros_like(x)
    kernels.divergent[(50,)](x, out, BLOCK=64)
    expected = np.zeros_like(x)
    for pid in range(50):
        values = x[pid] * 2 + (pid % 2 == 0) if x[pid].sum() > 0 else x[pid] - 1
        values = values + pid % 3 + sum(range(pid % 4)) + (10 if pid > 7 else 20)
        expected[pid] = 0 if pid == 5 else values + (100 if pid % 5 > 2 else pid % 5)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_a_lock_lets_one_program_in_at_a_time(random: np.random.Generator) -> None:
    x, out = random.standard_normal((32, 64)).astype("f4"), np.zeros((4, 64), "f4")
    kernels.locked_sum[(32,)](x, out, np.zeros(4, "i4"), np.zeros(4, "i4"), GROUPS=4, BLOCK=64)
    np.testing.assert_allclose(out, x.reshape(8, 4, 64).sum(0), rtol=1e-4, atol=1e-5)


def test_programs_that_wait_for_later_ones_are_scheduled_fairly() -> None:
    flag = np.zeros(50, "i4")
    kernels.relay[(50,)](flag)
    assert flag.all()


def test_a_lock_that_nobody_releases_is_a_deadlock_not_a_hang() -> None:
    x, out, taken = np.zeros((32, 64), "f4"), np.zeros((4, 64), "f4"), np.ones(4, "i4")
    with bragg.debug.check() as report, pytest.raises(KernelFault, match="deadlock: 32 programs wait"):
        kernels.locked_sum[(32,)](x, out, taken, taken, GROUPS=4, BLOCK=64)
    assert report.summary() == "1 error in 1 launch of 32 programs"


def test_the_last_program_reads_what_the_others_released(random: np.random.Generator) -> None:
    x, part = random.standard_normal(1000).astype("f4"), np.zeros(8, "f4")
    out, counter = np.zeros(1, "f4"), np.zeros(1, "i4")
    kernels.sum_by_last[(8,)](x, part, out, counter, 1000, BLOCK=128, PROGRAMS=8)
    np.testing.assert_allclose(out, x.sum(), rtol=1e-4)


def test_atomics_count_every_lane(random: np.random.Generator) -> None:
    x, counts = random.integers(0, 50, 10_000).astype("i4"), np.zeros(50, "i4")
    kernels.histogram[(10,)](x, counts, 10_000, BLOCK=1024)
    assert (counts == np.bincount(x, minlength=50)).all()


def test_block_pointers_check_their_boundaries(random: np.random.Generator) -> None:
    x, out = random.standard_normal((50, 70)).astype("f4"), np.zeros((70, 50), "f4")
    kernels.transpose_by_block_pointers[(4, 5)](x, out, 50, 70, BM=16, BN=16)
    assert (out == x.T).all()


def test_descriptors_clip_at_their_boundaries(random: np.random.Generator) -> None:
    x, out = random.standard_normal((50, 72)).astype("f4"), np.zeros((50, 72), "f4")
    kernels.copy_by_descriptor[(4, 5)](x, out, 50, 72, BM=16, BN=16)
    assert (out == x * 2).all()


def test_sorting_scanning_and_reducing(random: np.random.Generator) -> None:
    n = 64
    x, out = random.standard_normal(n).astype("f4"), np.zeros((11, n), "f4")
    kernels.along_axes[(1,)](x, out, N=n)
    assert (out[0] == np.sort(x)).all()
    np.testing.assert_allclose(out[1], np.cumsum(x), rtol=1e-5)
    assert (out[2] == x[::-1]).all()
    np.testing.assert_allclose(out[3], np.exp(x) / np.exp(x).sum(), rtol=1e-5)
    np.testing.assert_allclose(out[4], np.cumprod(x[::-1])[::-1], rtol=1e-5)
    assert (out[5].reshape(-1, 2) == x.reshape(-1, 2)[:, ::-1]).all()
    scaled = (x * np.float32(100)).astype("i4")
    assert out[6, :4].tolist() == [x.max(), x.argmax(), x.argmin(), np.bitwise_xor.reduce(scaled)]
    state, states = x[0], [x[0]]
    for value in x[1:]:
        state = state * value + value
        states.append(state)
    np.testing.assert_allclose(out[7], states, rtol=1e-4)
    assert (out[8] == np.roll(x, -1)).all()
    assert (out[9, :8] == np.sort(x)[::-1][:8]).all()
    assert (out[10, :16] == np.bincount((np.abs(x) * 4).astype(int), minlength=16)[:16]).all()


def test_random_numbers_are_those_of_philox() -> None:
    out = np.zeros(256, "f4")
    kernels.random_numbers[(2,)](out, 42, BLOCK=128)
    # Triton 3.6.0's own interpreter, seed 42, offsets 0 to 3.
    expected = ["0x1.8c543cp-1", "0x1.926f6ap-6", "0x1.649fecp-2", "0x1.14e3ecp-1"]
    assert out[:4].tolist() == [float.fromhex(number) for number in expected]
    assert abs(out.mean() - 0.5) < 0.05


@pytest.mark.parametrize("n", [256, 300])
def test_autotuned_kernels_with_heuristics(n: int, random: np.random.Generator) -> None:
    x, out = random.standard_normal(n).astype("f4"), np.zeros(n, "f4")
    kernels.tuned_copy[lambda meta: (-(-n // meta["BLOCK"]),)](x, out, n)
    assert (out == x).all()


def test_strided_views_are_read_and_written_in_place(random: np.random.Generator) -> None:
    whole, target = random.standard_normal((64, 100)).astype("f4"), np.zeros((64, 100), "f4")
    kernels.softmax[(64,)](target[:, 10:60], whole[:, 10:60], 100, 50, BLOCK=64)
    part = np.exp(whole[:, 10:60])
    np.testing.assert_allclose(target[:, 10:60], part / part.sum(1, keepdims=True), rtol=1e-5)
    assert (target[:, :10] == 0).all()
    assert (target[:, 60:] == 0).all()
