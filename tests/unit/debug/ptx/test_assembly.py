# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Inline assembly gives what the PTX manual says, computed apart from the engine."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.numbers.directed import operate
from bragg.debug.ptx.instructions import Registers
from bragg.debug.ptx.text import statements

triton = pytest.importorskip("triton")
ml_dtypes = pytest.importorskip("ml_dtypes")
import triton.language as tl  # noqa: E402


def result_of(text: str, *operands: Any, bits: int = 32) -> Any:
    """`$0` after a text was executed with operands in `$1` and on: signed integers, or as unsigned."""
    arrays = [np.atleast_1d(np.asarray(operand)) for operand in operands]
    registers = Registers(max((len(array) for array in arrays), default=1))
    for place, array in enumerate(arrays):
        unit = np.ascontiguousarray(array).view(f"u{array.itemsize}").astype(np.uint64)
        registers.write(f"${place + 1}", np.broadcast_to(unit, registers.executions))
    for statement in statements(text):
        registers.execute(statement)
    return registers.read("$0").astype(f"u{bits // 8}")


def single(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


SEVERAL = np.array([0, 1, 5, -1, -7, 2**31 - 1, -(2**31), 0x12345678], np.int32)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add.s32 $0, $1, $2;", lambda a, b: a + b),
        ("sub.s32 $0, $1, -3;", lambda a, b: a + 3),
        ("mul.lo.s32 $0, $1, $2;", lambda a, b: a * b),
        ("mul.hi.s32 $0, $1, $2;", lambda a, b: a * b >> 32),
        ("mul.hi.u32 $0, $1, $2;", lambda a, b: (a % 2**32) * (b % 2**32) >> 32),
        ("mad.lo.s32 $0, $1, $2, 7;", lambda a, b: a * b + 7),
        ("min.s32 $0, $1, $2;", min),
        ("max.u32 $0, $1, $2;", lambda a, b: max(a % 2**32, b % 2**32)),
        ("abs.s32 $0, $1;", lambda a, b: abs(a)),
        ("and.b32 $0, $1, 0x0ff0;", lambda a, b: a & 0x0FF0),
        ("not.b32 $0, $1;", lambda a, b: ~a),
        ("shl.b32 $0, $1, 4;", lambda a, b: a << 4),
        ("shr.s32 $0, $1, 4;", lambda a, b: a >> 4),
        ("shr.u32 $0, $1, 40;", lambda a, b: 0),
        ("lop3.b32 $0, $1, $2, 0x0f0f0f0f, 0xEA;", lambda a, b: a & b | 0x0F0F0F0F),
        ("lop3.b32 $0, $1, $2, 0x0f0f0f0f, 0x96;", lambda a, b: a ^ b ^ 0x0F0F0F0F),
        ("popc.b32 $0, $1;", lambda a, b: bin(a % 2**32).count("1")),
        ("clz.b32 $0, $1;", lambda a, b: 32 - (a % 2**32).bit_length()),
        ("brev.b32 $0, $1;", lambda a, b: int(f"{a % 2**32:032b}"[::-1], 2)),
        ("fns.b32 $0, $1, 0, 3;", lambda a, b: nth_one(a, range(32), 3)),
        ("fns.b32 $0, $1, 20, -2;", lambda a, b: nth_one(a, range(20, -1, -1), 2)),
        ("fns.b32 $0, $1, 4, 0;", lambda a, b: nth_one(a, range(4, 5), 1)),
        ("bfe.u32 $0, $1, 4, 8;", lambda a, b: (a % 2**32) >> 4 & 0xFF),
        ("bfe.s32 $0, $1, 3, 5;", lambda a, b: ((a >> 3 & 0x1F) ^ 0x10) - 0x10),
        ("bfi.b32 $0, $2, $1, 8, 4;", lambda a, b: a & ~0xF00 | (b & 0xF) << 8),
        ("prmt.b32 $0, $1, $2, 0x7531;", lambda a, b: bytes_of(a, b, 1, 3, 5, 7)),
        ("prmt.b32 $0, $1, 0, 0x4440;", lambda a, b: a & 0xFF),
        ("shf.l.wrap.b32 $0, $1, $1, 8;", lambda a, b: (a % 2**32) << 8 | (a % 2**32) >> 24),
        ("cvt.u32.u8 $0, $1;", lambda a, b: a & 0xFF),
        ("cvt.s32.s8 $0, $1;", lambda a, b: ((a & 0xFF) ^ 0x80) - 0x80),
        ("cvt.sat.u8.s32 $0, $1;", lambda a, b: min(max(a, 0), 255)),
        ("{ .reg .pred p; setp.gt.s32 p, $1, $2; selp.b32 $0, $1, $2, p; }", max),
        ("{ .reg .pred p; setp.lt.s32 p, $1, 0; mov.b32 $0, 1; @p mov.b32 $0, 2; }", lambda a, b: 2 if a < 0 else 1),
        ("{ .reg .pred p, q; setp.lt.s32 p|q, $1, 0; mov.b32 $0, 3; @!q mov.b32 $0, 4; }", lambda a, b: 3 + (a < 0)),
        ("{.reg .b16 lo, hi; mov.b32 {lo, hi}, $1; mov.b32 $0, {hi, lo};}", lambda a, b: a << 16 | (a % 2**32) >> 16),
        ("dp4a.s32.s32 $0, $1, $2, 10;", lambda a, b: 10 + sum(byte(a, k) * byte(b, k) for k in range(4))),
        ("add.u32 $0, $1, 1; // a comment; with semicolons\n /* {and this} */ add.u32 $0, $0, 1;", lambda a, b: a + 2),
    ],
)
def test_instruction_on_integers(text: str, expected: Any) -> None:
    a, b = (grid.ravel() for grid in np.meshgrid(SEVERAL, SEVERAL))
    wanted = [expected(x, y) % 2**32 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert result_of(text, a, b).tolist() == wanted


def nth_one(a: int, places: range, n: int) -> int:
    ones = [place for place in places if a >> place & 1]
    return ones[n - 1] if len(ones) >= n else -1


def byte(value: int, k: int) -> int:
    return ((value >> 8 * k & 0xFF) ^ 0x80) - 0x80


def bytes_of(a: int, b: int, *places: int) -> int:
    both = (a % 2**32) | (b % 2**32) << 32
    return sum((both >> 8 * place & 0xFF) << 8 * k for k, place in enumerate(places))


FLOATS = np.array([0.0, -0.0, 1.5, -2.25, 3e38, 1e-40, np.inf, np.nan, 0.1, 1 / 3], np.float32)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add.rn.f32 $0, $1, $2;", lambda a, b: a + b),
        ("mul.f32 $0, $1, $2;", lambda a, b: a * b),
        ("div.rn.f32 $0, $1, $2;", lambda a, b: a / b),
        ("max.f32 $0, $1, $2;", lambda a, b: np.where((a == 0) & (b == 0), a + b, np.fmax(a, b))),
        ("min.NaN.f32 $0, $1, $2;", lambda a, b: np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b))),
        ("add.sat.f32 $0, $1, $2;", lambda a, b: np.clip(np.nan_to_num(a + b, nan=0.0), 0, 1)),
        ("neg.f32 $0, $1;", lambda a, b: -a),
        ("copysign.f32 $0, $1, $2;", lambda a, b: np.copysign(b, a)),
        ("fma.rn.f32 $0, $1, 0f40000000, $2;", lambda a, b: (a.astype("f8") * 2 + b.astype("f8")).astype("f4")),
        ("rcp.rn.f32 $0, $1;", lambda a, b: 1 / a),
        ("cvt.rni.f32.f32 $0, $1;", lambda a, b: np.rint(a)),
        ("{ .reg .b16 h; cvt.rn.f16.f32 h, $1; cvt.f32.f16 $0, h; }", lambda a, b: a.astype("f2").astype("f4")),
        ("{ .reg .b64 d; cvt.f64.f32 d, $1; add.f64 d, d, 0d3FF0000000000000; cvt.rn.f32.f64 $0, d; }",
         lambda a, b: (a.astype("f8") + 1).astype("f4")),
    ],
)  # fmt: skip
def test_instruction_on_floats(text: str, expected: Any) -> None:
    a, b = (grid.ravel() for grid in np.meshgrid(FLOATS, FLOATS))
    with np.errstate(all="ignore"):
        actual, wanted = result_of(text, a, b).view(np.float32), expected(a, b).astype(np.float32)
    assert (np.isnan(actual) == np.isnan(wanted)).all()
    there = ~np.isnan(wanted)
    assert (actual.view("u4")[there] == wanted.view("u4")[there]).all()


def test_approximate_functions_are_the_functions() -> None:
    x = np.linspace(0.01, 8, 257).astype(np.float32)
    for text, function in {
        "ex2.approx.ftz.f32": np.exp2,
        "lg2.approx.f32": np.log2,
        "tanh.approx.f32": np.tanh,
        "rsqrt.approx.f32": lambda x: 1 / np.sqrt(x),
        "sin.approx.f32": np.sin,
    }.items():
        actual = result_of(f"{text} $0, $1;", x).view(np.float32)
        np.testing.assert_allclose(actual, function(x.astype(np.float64)), rtol=2e-7)


@pytest.mark.parametrize(("mode", "step"), [("rz", 0), ("rm", -1), ("rp", 1)])
def test_directed_rounding_brackets_the_exact_result(mode: str, step: int) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(500).astype(np.float32) * 10.0 ** random.integers(-9, 9, 500) for _ in range(2))
    a, b = a.astype(np.float32), b.astype(np.float32)
    for name, exact in {"add": a.astype("f8") + b, "mul": a.astype("f8") * b, "div": a.astype("f8") / b}.items():
        actual = result_of(f"{name}.{mode}.f32 $0, $1, $2;", a, b).view(np.float32).astype("f8")
        if step < 0:
            assert (actual <= exact).all()
        elif step > 0:
            assert (actual >= exact).all()
        else:
            assert (np.abs(actual) <= np.abs(exact)).all()
        assert (np.abs(actual - exact) <= np.abs(exact) * 2.0**-23 + 1e-44).all()


def test_directed_rounding_of_float64_brackets_the_exact_result() -> None:
    a, b = np.array([1.0, 0.1, -1 / 3]), np.array([3.0, 0.2, 7.0])
    for name in ("add", "mul", "div"):
        down, up = operate(name, "rd", a, b), operate(name, "ru", a, b)
        nearest = {"add": a + b, "mul": a * b, "div": a / b}[name]
        assert ((down <= nearest) & (nearest <= up)).all()
        assert (np.nextafter(down, np.inf) == up).any()


def test_conversions_pack_two_numbers_with_the_first_on_top() -> None:
    high, low = np.array([1.1, 500, -np.inf], np.float32), np.array([-2.7, 0.01, 3], np.float32)
    for target, dtype in (("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)):
        expected = np.stack([low.astype(dtype), high.astype(dtype)], axis=1).view("u4").ravel()
        assert (result_of(f"cvt.rn.{target}.f32 $0, $1, $2;", high, low) == expected).all()
    packed = result_of("cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", high, low, bits=16)
    values = packed.view("u1").reshape(-1, 2).copy().view(ml_dtypes.float8_e4m3fn).astype("f4")
    assert values[:, 0].tolist() == low.astype(ml_dtypes.float8_e4m3fn).astype("f4").tolist()
    assert values[:, 1].tolist() == [1.125, 448.0, -448.0]
    back = result_of("cvt.rn.f16x2.e4m3x2 $0, $1;", packed)
    assert (back.view(np.float16).reshape(-1, 2) == values).all()


def test_conversion_to_four_bits_takes_the_nearest_even() -> None:
    x = np.array([0.25, 0.75, 1.25, 2.5, 3.5, 5.0, 100, -0.3, -6], np.float32)
    codes = result_of("cvt.rn.satfinite.e2m1x2.f32 $0, $1, $2;", np.zeros_like(x), x, bits=8)
    assert codes.tolist() == [0, 2, 2, 4, 6, 6, 7, 9, 15]


def test_tf32_keeps_ten_digits() -> None:
    x = np.array([1 + 2**-11, 1 + 2**-12, 1 + 3 * 2**-11], np.float32)
    away = result_of("cvt.rna.tf32.f32 $0, $1;", x).view(np.float32)
    assert away.tolist() == [1 + 2**-10, 1.0, 1 + 2**-9]


def test_float_to_integer_saturates_and_nan_is_zero() -> None:
    x = np.array([2.5, -2.5, 3e9, -3e9, np.nan], np.float32)
    assert result_of("cvt.rni.s32.f32 $0, $1;", x).view("i4").tolist() == [2, -2, 2**31 - 1, -(2**31), 0]
    assert result_of("cvt.rpi.u32.f32 $0, $1;", x).tolist() == [3, 0, 3_000_000_000, 0, 0]


@triton.jit
def unpacked_bytes(a, b, c, d, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    (low, high) = tl.inline_asm_elementwise(
        asm="""
        {
            .reg .b8 part<4>;
            mov.b32 {part0, part1, part2, part3}, $8;
            cvt.u32.u8 $0, part0;
            cvt.u32.u8 $1, part1;
            cvt.u32.u8 $2, part2;
            cvt.u32.u8 $3, part3;
        }
        cvt.rn.f32.s32 $4, $0;
        cvt.rn.f32.s32 $5, $1;
        cvt.rn.f32.s32 $6, $2;
        cvt.rn.f32.s32 $7, $3;
        max.f32 $4, $4, $9;
        max.f32 $5, $5, $10;
        max.f32 $6, $6, $11;
        max.f32 $7, $7, $12;
        """,
        constraints="=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r",
        args=[tl.load(a + i), tl.load(b + i)],
        dtype=(tl.int32, tl.float32),
        is_pure=True,
        pack=4,
    )
    tl.store(c + i, low)
    tl.store(d + i, high)


def test_four_elements_share_registers_and_there_are_two_results() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 256, 64).astype(np.uint8), (random.standard_normal(64) * 200).astype(np.float32)
    c, d = np.zeros(64, np.int32), np.zeros(64, np.float32)
    bragg.debug.interpret(unpacked_bytes)[(4,)](a, b, c, d, BLOCK=16)
    assert (c == a).all()
    assert (d == np.maximum(a, b)).all()


@triton.jit
def through_addresses(x, out, locks):
    pid = tl.program_id(0)
    i = tl.arange(0, 8)
    value = tl.inline_asm_elementwise(
        "ld.global.relaxed.gpu.b32 $0, [$1];", "=r,l", [x + pid * 8 + i], dtype=tl.float32, is_pure=False, pack=1
    )
    tl.store(out + pid * 8 + i, value * 2)
    tl.inline_asm_elementwise(
        "{ .reg .pred p; setp.eq.s32 p, $2, 0; @p red.global.add.s32 [$1], 3; mov.b32 $0, 0; }",
        "=r,l,r",
        [locks, pid % 2],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


def test_memory_is_reached_by_address_with_bounds() -> None:
    x, out, locks = np.arange(32, dtype=np.float32), np.zeros(32, np.float32), np.zeros(1, np.int32)
    bragg.debug.interpret(through_addresses)[(4,)](x, out, locks)
    assert (out == x * 2).all()
    assert locks.tolist() == [6]
    with pytest.raises(KernelFault, match="out-of-bounds"):
        bragg.debug.interpret(through_addresses)[(5,)](x, np.zeros(40, np.float32), locks)


@triton.jit
def shifted_bytes(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    text: tl.constexpr = "ld.global.b8 $0, [$1]; shl.b32 $0, $0, 3; st.global.b8 [$2], $0;"
    tl.inline_asm_elementwise(text, "=r,l,l", [x + i, out + i], dtype=tl.int8, is_pure=False, pack=1)


def test_memory_is_read_and_written_without_a_guard() -> None:
    x, out = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    bragg.debug.interpret(shifted_bytes)[(1,)](x, out, BLOCK=64)
    assert (out == x << 3).all()


@triton.jit
def writes_no_result(out, STORES: tl.constexpr):
    dummy = tl.inline_asm_elementwise("bar.sync 0; // dummy $0", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(out, dummy if STORES else 1)


def test_result_that_no_instruction_writes_must_not_be_used() -> None:
    out = np.zeros(1, np.int32)
    with bragg.debug.check() as report:
        writes_no_result[(1,)](out, False)
    assert out.tolist() == [1]
    assert report.lines()[-1].startswith("no findings")
    with bragg.debug.check() as report:
        writes_no_result[(1,)](out, True)
    assert [finding.rule for finding in report] == ["uninitialised-read"]


@triton.jit
def assembled(x, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr):
    tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [tl.load(x)], dtype=tl.int32, is_pure=True, pack=1)


@pytest.mark.parametrize(
    ("text", "constraints", "error", "message"),
    [
        ("vote.sync.all.pred $0, $1;", "=r,r", Unsupported, r"\.py:\d+: the PTX instruction vote.sync.all.pred is not"),
        ("mov.u32 $0, %tid.x;", "=r,r", Unsupported, "%tid.x in inline assembly is not supported"),
        ("L: bra L;", "=r,r", Unsupported, "inline assembly with 'L:' is not supported"),
        ("mov.b32 $0, $1;", "=r,r,r", KernelFault, "declare 1 results and 2 operands"),
        ("mov.b32 $0, missing;", "=r,r", KernelFault, "register missing of inline assembly is read before"),
    ],
)
def test_what_is_unknown_is_refused_by_name(text: str, constraints: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        bragg.debug.interpret(assembled)[(1,)](np.zeros(1, np.int32), text, constraints)


@triton.jit
def doubled_by_assembly(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.inline_asm_elementwise("add.f32 $0, $1, $1;", "=f, f", [tl.load(x + i)], tl.float32, True, 1)
    tl.store(out + i, value + tl.load(x + i))


def test_assembly_of_float32_gets_float32_where_digits_are_compared_with_those_of_float64() -> None:
    x, out = np.linspace(1, 2, 8, dtype="f4"), np.zeros(8, "f4")
    with bragg.debug.check(add=["precision"]) as report:
        doubled_by_assembly[(1,)](x, out, N=8)
    assert not len(report), report.lines()
    assert np.allclose(out, 3 * x)
