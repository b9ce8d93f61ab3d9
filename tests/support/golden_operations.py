# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Operations on edge values, for a table of what a GPU gives.

`python -m tests.support.golden_operations OUT.npz` makes it on a machine with a GPU.

The table was made on an H200 with Triton 3.6.0; tests/unit/debug compares the engine with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.rounding import encode, round_to

LANES = 1024
FLOATS = ("fp16", "bf16", "fp32", "fp64")
SMALL_FLOATS = ("fp8e4nv", "fp8e5")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@triton.jit
def float_pairs(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, (a + b).to(tl.float64))
    tl.store(out + N + i, (a - b).to(tl.float64))
    tl.store(out + 2 * N + i, (a * b).to(tl.float64))
    tl.store(out + 3 * N + i, tl.maximum(a, b).to(tl.float64))
    tl.store(out + 4 * N + i, tl.minimum(a, b).to(tl.float64))
    tl.store(out + 5 * N + i, tl.where(a < b, a, b).to(tl.float64))
    tl.store(out + 6 * N + i, (a < b).to(tl.float64))
    tl.store(out + 7 * N + i, (a <= b).to(tl.float64))
    tl.store(out + 8 * N + i, (a == b).to(tl.float64))
    tl.store(out + 9 * N + i, (a != b).to(tl.float64))
    tl.store(out + 10 * N + i, (-a).to(tl.float64))
    tl.store(out + 11 * N + i, tl.abs(a).to(tl.float64))
    tl.store(out + 12 * N + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL).to(tl.float64))


@triton.jit
def float_functions(x, y, z, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    c = tl.load(z + i)
    tl.store(out + i, tl.floor(a))
    tl.store(out + N + i, tl.ceil(a))
    tl.store(out + 2 * N + i, tl.sqrt_rn(a))
    tl.store(out + 3 * N + i, tl.div_rn(a, b))
    tl.store(out + 4 * N + i, tl.fma(a, b, c))
    tl.store(out + 5 * N + i, a % b)


@triton.jit
def close_functions(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, a / b)
    tl.store(out + N + i, tl.exp(a))
    tl.store(out + 2 * N + i, tl.exp2(a))
    tl.store(out + 3 * N + i, tl.log(tl.abs(a)))
    tl.store(out + 4 * N + i, tl.sqrt(tl.abs(a)))
    tl.store(out + 5 * N + i, tl.rsqrt(tl.abs(a)))
    tl.store(out + 6 * N + i, tl.erf(a))
    tl.store(out + 7 * N + i, tl.log2(tl.abs(a)))


@triton.jit
def integer_pairs(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, (a + b).to(tl.int64))
    tl.store(out + N + i, (a - b).to(tl.int64))
    tl.store(out + 2 * N + i, (a * b).to(tl.int64))
    d = tl.where(b == 0, 1, b)
    tl.store(out + 3 * N + i, (a // d).to(tl.int64))
    tl.store(out + 4 * N + i, (a % d).to(tl.int64))
    tl.store(out + 5 * N + i, (a & b).to(tl.int64))
    tl.store(out + 6 * N + i, (a | b).to(tl.int64))
    tl.store(out + 7 * N + i, (a ^ b).to(tl.int64))
    s = b & 7
    tl.store(out + 8 * N + i, (a << s).to(tl.int64))
    tl.store(out + 9 * N + i, (a >> s).to(tl.int64))
    tl.store(out + 10 * N + i, tl.maximum(a, b).to(tl.int64))
    tl.store(out + 11 * N + i, tl.minimum(a, b).to(tl.int64))
    tl.store(out + 12 * N + i, (a < b).to(tl.int64))
    tl.store(out + 13 * N + i, (~a).to(tl.int64))
    tl.store(out + 14 * N + i, (-a).to(tl.int64))
    tl.store(out + 15 * N + i, (a >= b).to(tl.int64))


@triton.jit
def high_products(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.umulhi(tl.load(x + i), tl.load(y + i)).to(tl.int64))


@triton.jit
def to_floats(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, a.to(tl.float16).to(tl.float64))
    tl.store(out + N + i, a.to(tl.bfloat16).to(tl.float64))
    tl.store(out + 2 * N + i, a.to(tl.float32).to(tl.float64))
    tl.store(out + 3 * N + i, a.to(tl.float64))


@triton.jit
def small_to_floats(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, a.to(tl.float16).to(tl.float64))
    tl.store(out + N + i, a.to(tl.bfloat16).to(tl.float32).to(tl.float64))
    tl.store(out + 2 * N + i, a.to(tl.float32).to(tl.float64))


@triton.jit
def float_to_small(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, a.to(tl.float8e4nv).to(tl.float32).to(tl.float64))
    tl.store(out + N + i, a.to(tl.float8e5).to(tl.float32).to(tl.float64))


@triton.jit
def toward_zero(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, a.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float64))
    tl.store(out + N + i, a.to(tl.bfloat16, fp_downcast_rounding="rtz").to(tl.float64))


@triton.jit
def float_to_integers(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, a.to(tl.int8).to(tl.int64))
    tl.store(out + N + i, a.to(tl.int16).to(tl.int64))
    tl.store(out + 2 * N + i, a.to(tl.int32).to(tl.int64))
    tl.store(out + 3 * N + i, a.to(tl.int64))
    tl.store(out + 4 * N + i, a.to(tl.uint8).to(tl.int64))
    tl.store(out + 5 * N + i, a.to(tl.uint16).to(tl.int64))
    tl.store(out + 6 * N + i, a.to(tl.uint32).to(tl.int64))
    tl.store(out + 7 * N + i, a.to(tl.uint64).to(tl.int64))
    tl.store(out + 8 * N + i, a.to(tl.int1).to(tl.int64))


@triton.jit
def integer_to_integers(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, a.to(tl.int8).to(tl.int64))
    tl.store(out + N + i, a.to(tl.int16).to(tl.int64))
    tl.store(out + 2 * N + i, a.to(tl.int32).to(tl.int64))
    tl.store(out + 3 * N + i, a.to(tl.uint8).to(tl.int64))
    tl.store(out + 4 * N + i, a.to(tl.uint16).to(tl.int64))
    tl.store(out + 5 * N + i, a.to(tl.uint32).to(tl.int64))
    tl.store(out + 6 * N + i, a.to(tl.int1).to(tl.int64))


@triton.jit
def row_reductions(x, out, R: tl.constexpr, C: tl.constexpr):
    rows = tl.arange(0, R)
    a = tl.load(x + rows[:, None] * C + tl.arange(0, C)[None, :])
    tl.store(out + rows, tl.max(a, 1).to(tl.float64))
    tl.store(out + R + rows, tl.min(a, 1).to(tl.float64))
    tl.store(out + 2 * R + rows, tl.argmax(a, 1).to(tl.float64))
    tl.store(out + 3 * R + rows, tl.argmin(a, 1).to(tl.float64))


@triton.jit
def row_sums(x, out, R: tl.constexpr, C: tl.constexpr):
    rows = tl.arange(0, R)
    a = tl.load(x + rows[:, None] * C + tl.arange(0, C)[None, :])
    tl.store(out + rows, tl.sum(a, 1).to(tl.float64))


@triton.jit
def products(x, y, out, S: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, S)
    place = i[:, None] * S + i[None, :]
    tl.store(out + place, tl.dot(tl.load(x + place), tl.load(y + place), input_precision=PRECISION).to(tl.float64))


# Name, kernel, types of the operands, rows of the result, its type, constants.
Case = tuple[str, Any, tuple[str, ...], int, str, dict[str, Any]]


def cases() -> list[Case]:
    """All of them."""
    lanes = {"N": LANES}
    found: list[Case] = []
    for name in FLOATS:
        found.append((f"pairs {name}", float_pairs, (name, name), 13, "f8", lanes))
        found.append((f"to floats {name}", to_floats, (name,), 4, "f8", lanes))
        found.append((f"to integers {name}", float_to_integers, (name,), 9, "i8", lanes))
        if name != "fp64":
            found.append((f"to small {name}", float_to_small, (name,), 2, "f8", lanes))
            rows = {"R": LANES // 32, "C": 32}
            found.append((f"reductions {name}", row_reductions, (name,), 4, "f8", rows))
    found.append(("toward zero fp32", toward_zero, ("fp32",), 2, "f8", lanes))
    found.extend((f"to floats {name}", small_to_floats, (name,), 3, "f8", lanes) for name in SMALL_FLOATS)
    found.extend((f"functions {name}", float_functions, (name,) * 3, 6, "f8", lanes) for name in ("fp32",))
    found.append(("close fp32", close_functions, ("fp32", "fp32"), 8, "f4", lanes))
    for name in INTEGERS:
        found.append((f"pairs {name}", integer_pairs, (name, name), 16, "i8", lanes))
        found.append((f"to floats {name}", to_floats, (name,), 4, "f8", lanes))
        found.append((f"to integers {name}", integer_to_integers, (name,), 7, "i8", lanes))
        rows = {"R": LANES // 32, "C": 32}
        if name not in ("int64", "uint64"):
            found.append((f"reductions {name}", row_reductions, (name,), 4, "f8", rows))
            found.append((f"sums {name}", row_sums, (name,), 1, "f8", rows))
        if name in ("int32", "uint32", "int64", "uint64"):
            found.append((f"high {name}", high_products, (name, name), 1, "i8", lanes))
    for name, precision in (("fp16", "ieee"), ("bf16", "ieee"), ("int8", "ieee"), ("fp32", "ieee"), ("fp32", "tf32")):
        found.append((f"dot {name} {precision}", products, (name, name), 1, "f8", {"S": 32, "PRECISION": precision}))
    return found


_STORAGE = {"fp16": "u2", "bf16": "u2", "fp32": "u4", "fp64": "u8", "fp8e4nv": "u1", "fp8e5": "u1"}
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 127.5, 300.0, -300.0, 65504.0, 65520.0, 1e9, -3e9, 1e19, 1e38)


def operand(name: str, seed: int) -> Any:
    """Bits of LANES edge values and random values: unsigned integers of the type's size for floats."""
    random = np.random.RandomState(seed)
    if name in INTEGERS:
        kind = np.dtype(name)
        limits = np.iinfo(kind)
        edges = [0, 1, 2, 3, 7, 8, 31, limits.max, limits.max - 1, limits.min, limits.min + 1]
        bits = np.frombuffer(random.bytes(LANES * kind.itemsize), kind).copy()
        bits[: LANES // 2] = random.choice(np.array(edges, kind), LANES // 2)
        return bits
    storage = np.dtype(_STORAGE[name])
    bits = np.frombuffer(random.bytes(LANES * storage.itemsize), storage).copy()
    third = LANES // 4
    with np.errstate(all="ignore"):
        special = _bits(np.array([*_SPECIAL, np.inf, -np.inf, np.nan]), name)
        bits[:third] = random.choice(special, third)
        bits[third : 2 * third] = _bits(random.standard_normal(third) * 100, name)
    return bits


def tame(bits: Any, name: str) -> Any:
    """Operands whose products no order of addition can change: small whole numbers."""
    if name in INTEGERS:
        return bits
    whole = (bits % 16).astype(np.float32) / 4 - 2
    if name == "fp32":
        whole = whole * np.float32(1 + 2**-11)  # Digits that tf32 does not have.
    return _bits(whole, name)


def _bits(values: Any, name: str) -> Any:
    """Values in a type, as unsigned integers."""
    dtype = DTYPES[name]
    carried = round_to(values, dtype) if dtype.is_narrow else values.astype(dtype.carrier)
    return np.ascontiguousarray(encode(carried, dtype)).view(_STORAGE[name])


def operands(case: Case) -> list[Any]:
    """Bits of the operands of a case."""
    name, _, types, _, _, _ = case
    bits = [operand(kind, seed) for seed, kind in enumerate(types)]
    return [tame(one, kind) for one, kind in zip(bits, types, strict=True)] if name.startswith("dot") else bits


def result_shape(case: Case) -> tuple[int, int]:
    """Rows and lanes of the result of a case."""
    constants = case[5]
    return case[3], constants.get("R", LANES)


def run(case: Case, as_argument: Callable[[Any, str], Any]) -> Any:
    """Launch a case; gives what `as_argument` made of the array of the results."""
    _, kernel, types, _, kind, constants = case
    out = as_argument(np.zeros(result_shape(case), kind), "")
    kernel[(1,)](*(as_argument(b, t) for b, t in zip(operands(case), types, strict=True)), out, **constants)
    return out


def main(path: str) -> None:
    """Make the table on this machine's GPU."""
    import torch

    types = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
    types |= {"fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"}

    def on_gpu(array: Any, name: str) -> Any:
        tensor = torch.from_numpy(np.ascontiguousarray(array).view(np.uint8)).cuda()
        wanted = types.get(name) or (name or {"f8": "float64", "f4": "float32", "i8": "int64"}[array.dtype.str[1:]])
        return tensor.view(-1).view(getattr(torch, wanted))

    table = {}
    for case in cases():
        try:
            table[case[0]] = run(case, on_gpu).cpu().numpy().reshape(result_shape(case))
        except Exception as error:  # noqa: BLE001 - what does not compile is left out, and said
            print(case[0], type(error).__name__, str(error)[:300].replace("\n", " "))
    np.savez_compressed(path, **table)
    print(len(table), "cases,", sum(values.size for values in table.values()), "values")


if __name__ == "__main__":
    main(sys.argv[1])
