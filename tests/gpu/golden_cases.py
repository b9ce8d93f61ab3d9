"""Thousands of small cases, an operation on operands of some types each, for a table of what a GPU gives.

    python -m tests.gpu.golden_cases tests/golden/debug_cases.npz       on a machine with a GPU
    python -m tests.gpu.golden_cases --compile                          compiles all of them for a Hopper GPU, anywhere

tests/unit/debug/test_golden_cases.py compares the engine with the table. Cases of the same operands are one kernel,
written to a module of its own: Triton needs a file. A table says which GPU and Triton it comes from.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.support.golden_operations import FLOATS, INTEGERS, SMALL_FLOATS, operand, tame

LANES = 64
SIDE = 32  # Of matrices: the least K of operands of 8 bits.
_NAMES = {"fp8e4nv": "float8e4nv", "fp8e5": "float8e5", "fp16": "float16", "bf16": "bfloat16"}
_NAMES |= {"fp32": "float32", "fp64": "float64"}

HEADER = """\
# Made by tests/gpu/golden_cases.py.
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def keep(r, k: tl.constexpr, out, kinds, N: tl.constexpr):
    kind = tl.zeros((1,), tl.int32) + r.dtype.primitive_bitwidth
    if r.dtype.is_floating():
        kind += 100
        if r.dtype.is_bf16():
            kind += 100
        wide = (r if r.dtype.primitive_bitwidth >= 32 else r.to(tl.float32)).to(tl.float64).to(tl.int64, bitcast=True)
    else:
        if r.dtype.is_int_signed():
            kind += 400
        wide = r.to(tl.int64)
    tl.store(kinds + k + tl.arange(0, 1), kind)
    tl.store(out + k * N + tl.arange(0, N), tl.reshape(wide, (N,)))


@triton.jit
def spread(r, axis: tl.constexpr):
    return tl.broadcast_to(tl.expand_dims(r, axis), (8, 8))


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def greater(a, b):
    return tl.where(a > b, a, b)

"""


@dataclass(frozen=True)
class Case:
    """One operation.

    Attributes:
        name: `fp16 bf16: a + b`.
        types: Of the operands `a`, `b` and `c`.
        expression: What is computed of them, in Triton.
        ulp: Last places in which the engine may differ from a GPU.
        absolute: How far it may be off, where sums have no order that is known.
    """

    name: str
    types: tuple[str, ...]
    expression: str
    ulp: int = 0
    absolute: float = 0.0


def _same_type() -> Iterator[tuple[tuple[str, ...], str, int]]:
    """Operations of operands of one type."""
    for name in (*FLOATS, *INTEGERS):
        for text in ("a + b", "a - b", "a * b", "-a", "tl.abs(a)", "tl.where(a < b, a, b)", "tl.clamp(a, c, b)"):
            if not (text == "-a" and name.startswith("u")) and not (text.startswith("tl.clamp") and name in INTEGERS):
                yield (name,) * 3, text, 0
        for sign in ("<", "<=", ">", ">=", "==", "!="):
            yield (name,) * 3, f"a {sign} b", 0
        for text in ("tl.maximum(a, b)", "tl.minimum(a, b)"):
            yield (name,) * 3, text, 0
            if name in FLOATS:
                yield (name,) * 3, f"{text[:-1]}, propagate_nan=tl.PropagateNan.ALL)", 0
        for number in ("2", "3" if name.startswith("u") else "-3", "0.5", "True"):
            yield from (((name,) * 3, f"a {sign} {number}", 0) for sign in ("+", "*", "<"))
    for name in INTEGERS:
        for text in ("a & b", "a | b", "a ^ b", "~a", "a << (b & 7)", "a >> (b & 7)", "a / 2", "a << 1", "a >> 1"):
            yield (name,) * 3, text, 0
        divisors = ["((b & 62) + 1)", "7", "16", *([] if name.startswith("u") else ["(-2 - (b & 62))", "-7"])]
        yield from (((name,) * 3, f"a {sign} {by}", 0) for by in divisors for sign in ("//", "%"))
        yield (name,) * 3, "tl.cdiv(a & 63, (b & 62) + 1)", 0
    for name in ("int32", "uint32", "int64", "uint64"):
        yield (name,) * 3, "tl.umulhi(a, b)", 0


def _mixed_types() -> Iterator[tuple[tuple[str, ...], str, int]]:
    """Operations of operands of two types: what the type of the result is, and what is rounded when."""
    for first in (*FLOATS, *INTEGERS):
        for second in (*FLOATS, *INTEGERS):
            if first == second:
                continue
            for text in ("a + b", "a * b", "a < b", "a == b", "tl.maximum(a, b)", "tl.where(b > 0, a, b)"):
                yield (first, second), text, 0
            if first in INTEGERS and second in INTEGERS:
                yield from (((first, second), f"a {sign} b", 0) for sign in ("&", "|", "^"))
                if first.startswith("u") == second.startswith("u"):
                    yield (first, second), "a // ((b & 62) + 1)", 0


def _casts() -> Iterator[tuple[tuple[str, ...], str, int]]:
    every = (*SMALL_FLOATS, *FLOATS, *INTEGERS)
    for source in every:
        for target in (*every, "int1"):
            if target != source and not (target in SMALL_FLOATS and (source in INTEGERS or source == "fp64")):
                is_small = source in SMALL_FLOATS and target in (*INTEGERS, "fp64", "int1", *SMALL_FLOATS)
                yield (source,), f"a{'.to(tl.float32)' if is_small else ''}.to(tl.{_NAMES.get(target, target)})", 0
    for source, targets in (("fp16", ("bf16", "int16", "uint16")), ("fp32", ("int32", "uint32")), ("fp64", ("int64",))):
        for target in targets:
            yield (source,), f"a.to(tl.{_NAMES.get(target, target)}, bitcast=True)", 0
            yield (target,), f"a.to(tl.{_NAMES[source]}, bitcast=True)", 0
    for target in ("float16", "bfloat16"):
        yield ("fp32",), f'a.to(tl.{target}, fp_downcast_rounding="rtz")', 0


def _functions() -> Iterator[tuple[tuple[str, ...], str, int]]:
    for name in ("fp32", "fp64"):
        for text in ("tl.floor(a)", "tl.ceil(a)", "tl.fma(a, b, c)", "a % b"):
            yield (name,) * 3, text, 0
        close = ("tl.exp(c)", "tl.exp2(c)", "tl.log(tl.abs(a))", "tl.log2(tl.abs(a))", "tl.sqrt(tl.abs(a))")
        close += ("tl.rsqrt(tl.abs(a))", "tl.erf(a)", "tl.sin(c)", "tl.cos(c)", "a / b", "tl.sigmoid(c)")
        yield from (((name,) * 3, text, 2) for text in close)
        exact = ("trunc", "rint", "round", "fmod", "add_rn", "mul_rn", "copysign", "nextafter", "fdim")
        two = ("fmod", "add_rn", "mul_rn", "copysign", "nextafter", "fdim", "pow", "atan2", "hypot")
        close = ("tan", "sinh", "cosh", "tanh", "expm1", "log10", "log1p", "asinh", "atan", "cbrt", "erfc", "exp10")
        for function in (*exact, *close, "pow", "atan2", "hypot"):
            arguments = "a, b" if function in two else "a" if function in exact else "c"
            yield (name,) * 3, f"libdevice.{function}({arguments})", 0 if function in exact else 4
    for name in ("fp16", "bf16"):
        yield (name,) * 3, "a / b", 1
    yield ("fp32",) * 3, "tl.sqrt_rn(tl.abs(a))", 0
    yield ("fp32",) * 3, "tl.div_rn(a, b)", 0


# Half of the least normal float32, times which the third operand is subnormal.
_TINY = "c * 1.1754944e-38 * 0.5"
_ONE_OPERAND = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "cospi"),
    *("cyl_bessel_i0", "cyl_bessel_i1", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp", "exp10", "exp2", "expm1"),
    *("floor", "j0", "j1", "lgamma", "log", "log10", "log1p", "log2", "logb", "nearbyint", "normcdf", "normcdfinv"),
    *("rcbrt", "rint", "round", "rsqrt", "sin", "sinh", "sinpi", "sqrt", "tan", "tanh", "tgamma", "trunc", "y0", "y1"),
)
# Series of float64 here, and the GPU's own errors, which are large near zeros of the function.
_WIDE = ("erfcinv", "erfcx", "erfinv", "j0", "j1", "lgamma", "normcdfinv", "tgamma", "y0", "y1")
_ROUNDED = tuple(f"{name}_{mode}" for name in ("add", "sub", "mul", "div") for mode in ("rn", "rz", "rd", "ru"))
_TWO_OPERANDS = ("atan2", "copysign", "fdim", "fmod", "hypot", "nextafter", "pow", "remainder", "rhypot")
_EXACT = ("abs", "ceil", "floor", "logb", "nearbyint", "rint", "round", "trunc", "copysign", "nextafter", *_ROUNDED)


def _library() -> Iterator[tuple[tuple[str, ...], str, int]]:
    """Functions of libdevice on ordinary, subnormal and all kinds of operands."""
    for name in ("fp32", "fp64"):
        own = (name,) * 3
        for function in _ONE_OPERAND:
            ulp = 0 if function in _EXACT else 64 if function in _WIDE else 4
            yield own, f"libdevice.{function}(c)", ulp
            if name == "fp32":
                yield own, f"libdevice.{function}({_TINY})", ulp
        for function in (*_ROUNDED, *_TWO_OPERANDS):
            ulp = 0 if function in _EXACT else 4
            yield own, f"libdevice.{function}(a, b)", ulp
            if name == "fp32":
                yield own, f"libdevice.{function}({_TINY}, b)", ulp
                yield own, f"libdevice.{function}(b, {_TINY})", ulp
    own = ("fp32",) * 3
    for function in ("floor", "ceil", "sqrt_rn", "abs"):
        yield own, f"tl.{function}({_TINY})", 0
    for function in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "erf", "sin", "cos", "sigmoid"):
        yield own, f"tl.{function}({_TINY})", 2
    yield from ((own, f"tl.exp(c * {factor})", 2) for factor in (20, 43, -43))
    yield own, f"({_TINY}) / b", 2
    yield from ((own, text, 0) for text in (f"b % ({_TINY})", f"tl.div_rn({_TINY}, b)", f"tl.fma({_TINY}, b, a)"))


def _with_numbers() -> Iterator[tuple[tuple[str, ...], str, int]]:
    """Operands that are numbers of Python: in which type they meet the others."""
    for name in (*FLOATS, *INTEGERS):
        for function in ("maximum", "minimum"):
            yield from (((name,) * 3, f"tl.{function}(a, {number})", 0) for number in ("0", "2.5"))
        yield from (((name,) * 3, text, 0) for text in ("tl.where(a > 0, a, 0)", "tl.where(a > 0, 0.5, b)"))
    for name in FLOATS:
        yield (name,) * 3, "tl.fma(c, 2.0, c)", 0
        yield (name,) * 3, "tl.clamp(a, 0.0, 1.0)", 0


def _shapes() -> Iterator[tuple[tuple[str, ...], str, int]]:
    """Reductions, scans, sorts and movements; `c` holds values whose sums no order can change, and no NaN."""
    table = "tl.reshape(c, (8, 8))"
    for name in (*FLOATS, *INTEGERS):
        own = (name,) * 3
        for axis in (0, 1):
            functions = [
                "sum",
                "max",
                "min",
                *(["argmax", "argmin"] if name not in ("int64", "uint64", "fp64") else []),
            ]
            functions += ["xor_sum"] if name in INTEGERS else []
            yield from ((own, f"spread(tl.{function}({table}, {axis}), {axis})", 0) for function in functions)
            yield own, f"spread(tl.reduce({table}, {axis}, greater), {axis})", 0
            yield own, f"tl.cumsum({table}, {axis})", 0
            yield own, f"tl.cumsum({table}, {axis}, reverse=True)", 0
            yield own, f"tl.associative_scan({table}, {axis}, greater)", 0
        yield from ((own, f"tl.sort({table}, descending={flag})", 0) for flag in (False, True))
        for text in ("tl.flip(c, 0)", f"tl.trans({table})", "tl.interleave(c, c)", "tl.join(c, b)"):
            wide = f"tl.sum(tl.reshape({text}, (64, 2)), 1)" if text[3] in "ij" else text
            yield own, wide, 0
        if name in INTEGERS:
            yield own, f"tl.associative_scan({table}, 1, product)", 0


def _products() -> Iterator[tuple[tuple[str, ...], str, int]]:
    for name in ("fp16", "bf16", "fp8e4nv", "fp8e5", "int8", "fp32"):
        precisions = ("ieee", "tf32", "tf32x3") if name == "fp32" else ("ieee",)
        for precision in precisions:
            yield (name, name), f'tl.dot(a, b, input_precision="{precision}")', 0
            yield (name, name), f'tl.dot(a, tl.trans(b), input_precision="{precision}")', 0
        yield (name, name), "tl.dot(a, b) + tl.dot(b, a)", 0
    for name in ("fp16", "bf16"):
        yield (name, name), "tl.dot(a, b).to(a.dtype)", 0
    yield ("fp16", "fp16"), "tl.dot(a, b, out_dtype=tl.float16)", 0


# Of the sums of 32 products of up to 2.2 and 1.4 in a tensor core, each cut off at 2^-25 of the largest term and then
# at the last place of float32; of sums in another order; and of parts of float32 that the compiler fuses with `* 1.1`.
_SUM_ERROR = 32 * 2.2 * 1.4 * 2.0**-22


def _uneven_products() -> Iterator[tuple[tuple[str, ...], str, float]]:
    """Products whose sums are not exact, and how far they may be off."""
    for precision in ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"):
        text = f'tl.dot(a * 1.1, b * 0.7, input_precision="{precision}")'
        yield ("fp32", "fp32"), text, 0.0 if precision == "ieee" else _SUM_ERROR
    for name in ("fp16", "bf16"):
        yield (name, name), "tl.dot(a * 1.1, b * 0.7)", _SUM_ERROR


def cases() -> list[Case]:
    """All of them, in the order of the table."""
    found = {}
    for make in (_same_type, _mixed_types, _casts, _functions, _shapes, _products, _library, _with_numbers):
        for types, text, ulp in make():
            name = _name(types, text)
            found.setdefault(name, Case(name, types, text, ulp))
    for types, text, absolute in _uneven_products():
        found[_name(types, text)] = Case(_name(types, text), types, text, 0, absolute)
    return list(found.values())


def _name(types: tuple[str, ...], text: str) -> str:
    return f"{' '.join(dict.fromkeys(types))}: {text}"


def groups(wanted: list[Case]) -> dict[str, list[Case]]:
    """Cases that one kernel computes: of the same operands, not too many."""
    found: dict[str, list[Case]] = {}
    for case in wanted:
        kind = "dot" if "tl.dot" in case.expression else "lanes"
        stem = f"{kind}_{'_'.join(case.types)}"
        part = sum(len(group) for name, group in found.items() if name.rpartition("_")[0] == stem) // 24
        found.setdefault(f"{stem}_{part}", []).append(case)
    return found


def lanes_of(group: list[Case]) -> int:
    """Elements of each operand and result."""
    return SIDE * SIDE if "tl.dot" in group[0].expression else LANES


def source(name: str, group: list[Case]) -> str:
    """The kernel of a group."""
    is_matrix = lanes_of(group) != LANES
    loads = ["i = tl.arange(0, N)"]
    for block, pointer in zip("abc", "xyz", strict=False):
        value = f"tl.load({pointer} + i)"
        loads.append(f"{block} = {f'tl.reshape({value}, ({SIDE}, {SIDE}))' if is_matrix else value}")
    used = loads[: 1 + len(group[0].types)]
    kept = [f"keep({case.expression}, {k}, out, kinds, N)" for k, case in enumerate(group)]
    body = "\n".join(f"    {line}" for line in (*used, *kept))
    return (
        f"\n@triton.jit\ndef {name}({', '.join('xyz'[: len(group[0].types)])}, out, kinds, N: tl.constexpr):\n{body}\n"
    )


def operands(group: list[Case]) -> list[Any]:
    """Bits of the operands: edge values and random ones; the third one is tame, and so are matrices."""
    types, count = group[0].types, lanes_of(group)
    every = [operand(kind, seed) for seed, kind in enumerate(types)]
    if count != LANES:
        return [tame(bits, kind) for bits, kind in zip(every, types, strict=True)]
    chosen = [np.ascontiguousarray(bits[:: len(bits) // LANES]) for bits in every]
    return [tame(bits, types[k]) if k == 2 and types[k] in FLOATS else bits for k, bits in enumerate(chosen)]


def load(directory: Path, wanted: dict[str, list[Case]]) -> Any:
    """The module with the kernels of some groups, written to a directory."""
    path = directory / "golden_kernels.py"
    path.write_text(HEADER + "\n".join(source(name, group) for name, group in wanted.items()))
    spec = importlib.util.spec_from_file_location(f"golden_kernels_{id(wanted)}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def run(kernel: Any, group: list[Case], as_argument: Callable[[Any, str], Any]) -> tuple[Any, Any]:
    """Launch a group; gives what `as_argument` made of the arrays of results and of their types."""
    out = as_argument(np.zeros((len(group), lanes_of(group)), np.int64), "")
    kinds = as_argument(np.zeros(len(group), np.int32), "")
    given = (as_argument(bits, kind) for bits, kind in zip(operands(group), group[0].types, strict=True))
    kernel[(1,)](*given, out, kinds, N=lanes_of(group))
    return out, kinds


def pack(wanted: list[Case], results: dict[str, Any], kinds: dict[str, int]) -> dict[str, Any]:
    """The columns of a table: names, types, and results in as many bytes as their type has."""
    columns: dict[str, Any] = {
        "names": np.array([case.name for case in wanted]),
        "kinds": np.array([kinds[case.name] for case in wanted], np.int16),
    }
    for size in (1, 2, 4, 8):
        parts = [_narrow(results[case.name], kinds[case.name]) for case in wanted]
        columns[f"bytes{size}"] = np.concatenate([part for part in parts if part.itemsize == size] or [np.zeros(0)])
    return columns


def unpack(table: Any) -> dict[str, tuple[int, Any]]:
    """By case, the type of the result and its values: float64 or int64."""
    found, used = {}, dict.fromkeys((1, 2, 4, 8), 0)
    group_of = {case.name: group for group in groups(cases()).values() for case in group}
    columns = {size: table[f"bytes{size}"] for size in used}
    for name, kind in zip(table["names"].tolist(), table["kinds"].tolist(), strict=True):
        dtype, count = _storage(kind), lanes_of(group_of[name])
        size = dtype.itemsize
        bits = columns[size][used[size] : used[size] + count]
        used[size] += count
        found[name] = kind, _values(bits.view(dtype), kind)
    return found


def is_float(kind: int) -> bool:
    """The type of a result is a float."""
    return 100 < kind < 400


def _storage(kind: int) -> Any:
    """What holds the values of a type: fp32 for bf16 too."""
    if is_float(kind):
        return np.dtype({164: "f8", 132: "f4", 116: "f2", 216: "f4"}.get(kind, "f4"))
    return np.dtype(f"i{max(kind % 100, 8) // 8}")


def _narrow(wide: Any, kind: int) -> Any:
    """int64 as the kernel stored it, in as many bytes as the type needs; unsigned integers of that size."""
    with np.errstate(all="ignore"):
        narrow = (wide.view(np.float64) if is_float(kind) else wide).astype(_storage(kind))
    return narrow.view(f"u{narrow.itemsize}")


def _values(narrow: Any, kind: int) -> Any:
    return narrow.astype(np.float64) if is_float(kind) else narrow.astype(np.int64)


def compile_group(wanted: tuple[str, list[Case]]) -> str:
    """Compile a group for a Hopper GPU; what was wrong, if anything."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    name, group = wanted
    short = {"uint": "u", "int": "i"}
    types = [next((kind.replace(long, s) for long, s in short.items() if kind.startswith(long)), kind)
             for kind in group[0].types]  # fmt: skip
    signature = {**{n: f"*{t}" for n, t in zip("xyz", types, strict=False)}, "out": "*i64", "kinds": "*i32"}
    with TemporaryDirectory() as directory:
        kernel = getattr(load(Path(directory), {name: group}), name)
        constants = {(len(signature),): lanes_of(group)}
        try:
            triton.compile(ASTSource(kernel, {**signature, "N": "constexpr"}, constants), GPUTarget("cuda", 90, 32))
        except Exception as error:  # noqa: BLE001 - every failure is told
            return f"{name}: {type(error).__name__}: {error}"
    return ""


def run_on_gpu(wanted: tuple[str, list[Case]]) -> tuple[str, Any, Any]:
    """Run a group on this machine's GPU."""
    import torch

    names = {"fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"}

    def on_gpu(array: Any, name: str) -> Any:
        kind = getattr(torch, names.get(name) or _NAMES.get(name) or name or str(array.dtype))
        return torch.from_numpy(np.ascontiguousarray(array).view(np.uint8).reshape(-1)).cuda().view(kind)

    name, group = wanted
    with TemporaryDirectory() as directory:
        kernel = getattr(load(Path(directory), {name: group}), name)
        out, kinds = run(kernel, group, on_gpu)
        return name, out.cpu().numpy().reshape(len(group), -1), kinds.cpu().numpy()


def make_table(path: Path, jobs: int, only_missing: bool) -> None:
    """Run every case on the GPU, or those that the table lacks, and write the table."""
    import torch
    import triton

    made: dict[str, Any] = {}
    kinds: dict[str, int] = {}
    if only_missing:
        with np.load(path) as file:
            for name, (kind, values) in unpack(file).items():
                made[name], kinds[name] = values.view(np.int64), kind
    wanted = groups([case for case in cases() if case.name not in made])
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for name, results, types in pool.map(run_on_gpu, wanted.items()):
            made |= {case.name: row for case, row in zip(wanted[name], results, strict=True)}
            kinds |= {case.name: int(kind) for case, kind in zip(wanted[name], types, strict=True)}
    origin = f"{torch.cuda.get_device_name()}, Triton {triton.__version__}"
    np.savez_compressed(path, origin=np.array(origin), **pack(cases(), made, kinds))
    print(f"{len(made)} cases, {path.stat().st_size:,} bytes, {origin}")


def main() -> None:
    """Make the table, or only compile its kernels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, nargs="?")
    parser.add_argument("--compile", action="store_true", help="compile every kernel, and run none")
    parser.add_argument("--missing", action="store_true", help="run only the cases that the table lacks")
    parser.add_argument("--only", default="", help="groups whose name contains this")
    parser.add_argument("--jobs", type=int, default=12)
    options = parser.parse_args()
    wanted = {name: group for name, group in groups(cases()).items() if options.only in name}
    if not options.compile:
        make_table(options.table, options.jobs, options.missing)
        return
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        failures = [text for text in pool.map(compile_group, wanted.items()) if text]
    print(f"{len(wanted)} kernels, {len(failures)} failed", *failures, sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
