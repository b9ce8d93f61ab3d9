# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Operations on whole blocks give what their definition gives, computed apart from the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault

triton = pytest.importorskip("triton")
ml_dtypes = pytest.importorskip("ml_dtypes")
import triton.language as tl  # noqa: E402


def run(kernel: Any, *arguments: Any, programs: int = 1, **named: Any) -> None:
    bragg.debug.interpret(kernel)[(programs,)](*arguments, **named)


@triton.jit
def scaled_product(
    a, a_scale, b, b_scale, c, A: tl.constexpr, B: tl.constexpr, KA: tl.constexpr, KB: tl.constexpr, G: tl.constexpr
):
    m = tl.arange(0, 32)
    n = tl.arange(0, 16)
    x = tl.load(a + m[:, None] * KA + tl.arange(0, KA)[None, :])
    y = tl.load(b + tl.arange(0, KB)[:, None] * 16 + n[None, :])
    xs = tl.load(a_scale + m[:, None] * G + tl.arange(0, G)[None, :])
    ys = tl.load(b_scale + n[:, None] * G + tl.arange(0, G)[None, :])
    acc = tl.full((32, 16), 1.0, tl.float32)
    tl.store(c + m[:, None] * 16 + n[None, :], tl.dot_scaled(x, xs, A, y, ys, B, acc))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
NARROW = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def operand(random: np.random.Generator, name: str, rows: int, k: int) -> tuple[Any, Any]:
    """Bytes of [rows, k] elements, and their values."""
    if name == "e2m1":
        codes = random.integers(0, 16, (rows, k))
        return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), E2M1[codes]
    values = random.standard_normal((rows, k)).astype(NARROW[name])
    return values.view(np.uint8), values.astype(np.float64)


@pytest.mark.parametrize("names", [("e2m1", "e2m1"), ("e4m3", "e5m2"), ("e5m2", "e2m1")])
def test_scaled_product_of_microscaled_blocks(names: tuple[str, str]) -> None:
    random = np.random.default_rng(0)
    k, groups = 64, 2
    (a, x), (b, y) = operand(random, names[0], 32, k), operand(random, names[1], 16, k)
    a_scale, b_scale = (random.integers(120, 134, (rows, groups)).astype(np.uint8) for rows in (32, 16))
    x *= np.repeat(2.0 ** (a_scale.astype(int) - 127), k // groups, axis=1)
    y *= np.repeat(2.0 ** (b_scale.astype(int) - 127), k // groups, axis=1)
    c = np.zeros((32, 16), np.float32)
    b = np.ascontiguousarray(b.T)
    run(scaled_product, a, a_scale, b, b_scale, c, A=names[0], B=names[1], KA=a.shape[1], KB=b.shape[0], G=groups)
    np.testing.assert_allclose(c, x @ y.T + 1, rtol=1e-5, atol=1e-3)


def test_scales_of_nvfp4_are_numbers() -> None:
    random = np.random.default_rng(0)
    (a, x), (b, y) = operand(random, "e2m1", 32, 64), operand(random, "e2m1", 16, 64)
    a_scale, b_scale = (random.uniform(0.1, 400, (rows, 4)).astype(NARROW["e4m3"]) for rows in (32, 16))
    x *= np.repeat(a_scale.astype(np.float64), 16, axis=1)
    y *= np.repeat(b_scale.astype(np.float64), 16, axis=1)
    c = np.zeros((32, 16), np.float32)
    run(scaled_product, a, a_scale, np.ascontiguousarray(b.T), b_scale, c, A="e2m1", B="e2m1", KA=32, KB=32, G=4)
    np.testing.assert_allclose(c, x @ y.T + 1, rtol=1e-5, atol=1e-3)


def test_scale_of_all_ones_is_nan_and_wrong_scales_are_a_fault() -> None:
    random = np.random.default_rng(0)
    (a, _), (b, _) = operand(random, "e4m3", 32, 64), operand(random, "e4m3", 16, 64)
    scale = np.full((32, 2), 127, np.uint8)
    scale[3, 1] = 255
    c = np.zeros((32, 16), np.float32)
    sizes = {"A": "e4m3", "B": "e4m3", "KA": 64, "KB": 64}
    run(scaled_product, a, scale, np.ascontiguousarray(b.T), scale[:16, :], c, G=2, **sizes)
    assert np.isnan(c[3]).all()
    assert np.isnan(c[:, 3]).all()
    assert np.isfinite(c[4:, 4:]).all()
    with pytest.raises(KernelFault, match="do not fit"):
        run(scaled_product, a, np.zeros((32, 8), np.uint8), b, np.zeros((16, 8), np.uint8), c, G=8, **sizes)


@triton.jit
def gathered(x, rows, out, y, M, COLUMN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, 32], [32, 1], [1, 16])
    target = tl.make_tensor_descriptor(y, [M, 32], [32, 1], [1, 16])
    numbers = tl.load(rows + tl.arange(0, 8))
    block = source.gather(numbers, COLUMN)
    tl.store(out + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :], block)
    target.scatter(block * 2, numbers, COLUMN)


@pytest.mark.parametrize("column", [0, 8, 24])
def test_descriptor_gathers_and_scatters_rows(column: int) -> None:
    x = np.arange(10 * 32, dtype=np.float32).reshape(10, 32)
    rows = np.array([3, 0, 9, 12, -1, 5, 1, 7], np.int32)
    out, y = np.full((8, 16), 7, np.float32), np.zeros((10, 32), np.float32)
    run(gathered, x, rows, out, y, 10, COLUMN=column)
    padded = np.zeros((8, 16), np.float32)
    inside = [k for k, row in enumerate(rows) if 0 <= row < 10]
    width = min(16, 32 - column)
    padded[inside, :width] = x[rows[inside], column : column + width]
    assert (out == padded).all()
    expected = np.zeros_like(y)
    expected[rows[inside], column : column + width] = 2 * x[rows[inside], column : column + width]
    assert (y == expected).all()


@triton.jit
def reduced(x, y, OPERATION: tl.constexpr):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    target = tl.make_tensor_descriptor(y, [12, 16], [16, 1], [8, 16])
    block = tl.load(x + i * 16 + j)
    if OPERATION == "add":
        target.atomic_add([8, 0], block)
    elif OPERATION == "max":
        target.atomic_max([8, 0], block)
    else:
        target.atomic_xor([8, 0], block)


CHANGES = [("add", np.add, "i4"), ("max", np.maximum, "i4"), ("max", np.maximum, "f2"), ("xor", np.bitwise_xor, "i4")]


@pytest.mark.parametrize(("name", "function", "kind"), CHANGES)
def test_descriptor_changes_a_block_atomically(name: str, function: Any, kind: str) -> None:
    random = np.random.default_rng(0)
    x, y = (random.integers(-9, 9, (n, 16)).astype(kind) for n in (8, 12))
    expected = y.copy()
    expected[8:] = function(y[8:], x[:4])
    run(reduced, x, y, OPERATION=name)
    assert (y == expected).all()


@triton.jit
def reduced_to_zeros(x, y, OPERATION: tl.constexpr):
    target = tl.make_tensor_descriptor(y, [8], [1], [8])
    if OPERATION == "max":
        target.atomic_max([0], tl.load(x + tl.arange(0, 8)))
    else:
        target.atomic_min([0], tl.load(x + tl.arange(0, 8)))


@pytest.mark.parametrize(("name", "signs"), [("max", [False, False, True]), ("min", [True, True, True])])
def test_descriptor_takes_negative_zero_for_less_and_numbers_before_nan_as_hopper(name: str, signs: list[bool]) -> None:
    x, y = np.ones((2, 8), "f2")
    x[:4], y[:4] = [0.0, -0.0, -0.0, np.nan], [-0.0, 0.0, -0.0, 2.0]
    run(reduced_to_zeros, x, y, OPERATION=name)
    assert np.signbit(y[:3]).tolist() == signs
    assert (y[:3] == 0).all()
    assert y[3] == 2


def test_descriptor_refuses_what_the_hardware_does_not_reduce() -> None:
    with pytest.raises(KernelFault, match="atomic_max of a tensor descriptor does not take fp32"):
        run(reduced, np.zeros((8, 16), np.float32), np.zeros((12, 16), np.float32), OPERATION="max")
    halves = np.zeros((8, 16), np.float16), np.zeros((12, 16), np.float16)
    with pytest.raises(KernelFault, match="atomic_max of fp16 takes"), bragg.debug.check(target="sm_80"):
        reduced[(1,)](*halves, OPERATION="max")


@triton.jit
def larger_size(a, b):
    if tl.abs(a) >= tl.abs(b):
        return a
    else:  # noqa: RET505 - what is tested
        return b


@triton.jit
def larger_size_and_index(a, i, b, j):
    if tl.abs(b) > tl.abs(a):
        a, i = b, j
    return a, i


@triton.jit
def combined_by_branches(x, out, rows, running):
    i, j = tl.arange(0, 4)[:, None], tl.arange(0, 8)[None, :]
    values = tl.load(x + tl.program_id(0) * 32 + i * 8 + j)
    tl.store(out + tl.program_id(0), tl.reduce(values, None, larger_size))
    _, index = tl.reduce((values, tl.broadcast_to(j, values.shape)), 1, larger_size_and_index)
    tl.store(rows + tl.program_id(0) * 4 + tl.arange(0, 4), index)
    tl.store(running + tl.program_id(0) * 32 + i * 8 + j, tl.associative_scan(values, 1, larger_size))


def test_functions_that_combine_elements_may_branch_on_them() -> None:
    x = np.random.default_rng(0).integers(-99, 99, (2, 4, 8)).astype("f4")
    out, rows, running = np.zeros(2, "f4"), np.zeros((2, 4), "i4"), np.zeros((2, 4, 8), "f4")
    with bragg.debug.check() as report:
        combined_by_branches[(2,)](x, out, rows, running)
    assert len(report) == 0
    sizes = np.abs(x)
    assert (np.abs(out) == sizes.max(axis=(1, 2))).all()
    assert (rows == sizes.argmax(axis=2)).all()
    assert (np.abs(running) == np.maximum.accumulate(sizes, axis=2)).all()


@triton.jit
def printed(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.device_print("x: ", tl.load(x + i), x + i)
    tl.device_print("bits ", tl.load(x + i), hex=True)
    print("one", tl.program_id(0))


def test_values_are_printed_with_their_program_and_pointers_with_their_tensor(capsys: Any) -> None:
    run(printed, np.array([7, 10], "i4"), N=2)
    assert capsys.readouterr().out.splitlines() == [
        "pid (0, 0, 0) x: [ 7 10] x + [0 1]",
        "pid (0, 0, 0) bits [0x7 0xa]",
        "pid (0, 0, 0) one 0",
    ]


@triton.jit
def steps_of_collatz(n, limit):
    steps = 0
    while (n > 1) & (steps < limit):
        if n % 2 == 1:
            n = 3 * n + 1
        else:
            n = n // 2
            steps += 0
        steps += 1
    return steps


@triton.jit
def sorted_pair(a0, a1, b0, b1):
    return tl.minimum(a0, a1), tl.maximum(a0, a1), a0 + b0, a1 + b1


@triton.jit
def mapped(x, out):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    values = tl.load(x + i)
    tl.store(out + i, tl.map_elementwise(steps_of_collatz, values, 1000))


@triton.jit
def mapped_by_two(x, low, total):
    i = tl.arange(0, 16)
    values = tl.load(x + i)
    a, b = tl.map_elementwise(sorted_pair, values, i * 10, pack=2)
    tl.store(low + i, a)
    tl.store(total + i, b)


@pytest.mark.skipif(not hasattr(tl, "map_elementwise"), reason="this Triton has no map_elementwise")
def test_function_of_one_element_is_mapped_with_its_own_control_flow() -> None:
    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    x, out = np.arange(1, 33, dtype=np.int32), np.zeros(32, np.int32)
    run(mapped, x, out, programs=2)
    assert out.tolist() == [steps(n) for n in range(1, 33)]


@pytest.mark.skipif(not hasattr(tl, "map_elementwise"), reason="this Triton has no map_elementwise")
def test_function_of_two_neighbours_gives_two_blocks() -> None:
    x = np.random.default_rng(0).integers(0, 99, 16).astype(np.int32)
    low, total = np.zeros(16, np.int32), np.zeros(16, np.int32)
    run(mapped_by_two, x, low, total)
    assert (low == np.sort(x.reshape(8, 2), axis=1).ravel()).all()
    assert (total == x + np.arange(16) * 10).all()


@triton.jit
def to_finite_float(x, codes, back, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    narrow = tl.load(x + i).to(tl.float8e4b15)
    tl.store(codes + i, narrow.to(tl.uint8, bitcast=True))
    tl.store(back + i, narrow.to(tl.float32))


def test_finite_float_of_8_bits_for_every_half() -> None:
    bits = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    x, codes, back = bits.view(np.float16), np.zeros(65536, np.uint8), np.zeros(65536, np.float32)
    run(to_finite_float, x, codes, back, N=1024, programs=64)
    # The compiled sequence: clamp to 1.75 (which replaces NaN), double, add half of a last digit, keep the high byte.
    clamped = np.where(np.isnan(x), 0x3F00, np.minimum(bits & 0x7FFF, 0x3F00)).astype(np.uint32)
    expected = (((clamped * 2 + 0x80) >> 8) | (bits >> 8 & 0x80)).astype(np.uint8)
    assert (codes == expected).all()
    wide = (expected.astype(np.uint16) & 0x80) << 8 | (expected.astype(np.uint16) & 0x7F) << 7
    assert (back.view(np.uint32) == wide.view(np.float16).astype(np.float32).view(np.uint32)).all()


@triton.jit
def truncated(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    narrow = tl.cast(tl.load(x + i), tl.float8e5, fp_downcast_rounding="rtz")
    tl.store(out + i, narrow.to(tl.float32))


def test_rounding_toward_zero_to_eight_bits_never_grows() -> None:
    x = np.array([1.24, -1.26, 1.74, 1e9, -1e9, np.inf, 3e-5, 0.0], np.float32)
    out = np.zeros_like(x)
    run(truncated, x, out, N=8)
    assert out.tolist() == [1.0, -1.25, 1.5, 57344.0, -57344.0, np.inf, 1.52587890625e-05, 0.0]


@triton.jit
def rounded_integer(x):
    tl.store(x, tl.cast(tl.load(x).to(tl.int32), tl.float32, fp_downcast_rounding="rtz"))


def test_rounding_where_there_is_none_is_a_fault() -> None:
    with pytest.raises(KernelFault, match="int32 to fp32 has no rounding to choose"):
        run(rounded_integer, np.zeros(1, np.float32))


@triton.jit
def product(a, b, c, TF32: tl.constexpr):
    rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    place = rows * 16 + columns
    tl.store(c + place, tl.dot(tl.load(a + place), tl.load(b + place), allow_tf32=TF32))


@pytest.mark.parametrize(
    ("asked", "default", "error"),
    [(None, None, 1e-5), (False, None, 1e-5), (True, None, 1e-2), (None, "tf32", 1e-2), (None, "ieee", 1e-5)],
)
def test_products_of_float32_round_to_tf32_when_asked(asked: bool | None, default: str | None, error: float) -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 16, 16)).astype(np.float32)
    c = np.empty_like(a)
    with triton.knobs.language.scope():
        triton.knobs.language.fp32_default = default
        run(product, a, b, c, asked)
    found = np.abs(c - a.astype(np.float64) @ b).max()
    assert error / 50 < found < error


@triton.jit
def single_values_with_axes(out):
    row, column = tl.program_id(0), tl.program_id(1)
    is_inside = (row[:, None] < 2) & (column[None, :] < 3)
    tl.store(out + row[:, None] * 4 + column[None, :], 1.0, mask=is_inside)


def test_a_single_value_takes_axes_until_triton_3_9(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.zeros((4, 4), "f4")
    monkeypatch.setattr("bragg.debug.numbers.shapes.is_before", lambda major, minor: True)
    bragg.debug.interpret(single_values_with_axes)[(4, 4)](out)
    assert out.sum() == out[:2, :3].sum() == 6
    monkeypatch.setattr("bragg.debug.numbers.shapes.is_before", lambda major, minor: False)
    with pytest.raises(KernelFault, match="too many indices for a block of 0 axes"):
        bragg.debug.interpret(single_values_with_axes)[(4, 4)](out)
