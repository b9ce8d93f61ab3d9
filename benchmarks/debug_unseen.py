"""What small tests of kernels cost, each of a kernel that was not launched before: CPU time of 195 tests of one launch.

The tests have the form of those of Triton's own language: a template whose expression is filled in for each operator,
function and type, one program, and a comparison with PyTorch. Contenders are the tests without the launch, the engine
without and with the checks of `bragg check`, and Triton's interpreter.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import itertools
import json
import os
import statistics
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

import harness

CONTENDERS = ("no launch", "interpret", "check", "triton interpreter")
TIMEOUT_S = 120

expression_here: Any = None  # What the templates are filled in for.


@triton.jit
def one_operand(x, y, out, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """A function of a block."""
    i = tl.arange(0, size)
    x = tl.load(x + i)
    tl.store(out + i, expression_here)


@triton.jit
def two_operands(x, y, out, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """An operator of two blocks."""
    i = tl.arange(0, size)
    x = tl.load(x + i)
    y = tl.load(y + i)
    tl.store(out + i, expression_here)


@triton.jit
def rows(x, y, out, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """A reduction of rows."""
    i, k = tl.arange(0, 8), tl.arange(0, size // 8)
    x = tl.load(x + i[:, None] * (size // 8) + k[None, :])
    tl.store(out + i, expression_here)


@triton.jit
def loop(x, y, out, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """A sum over a loop with a branch."""
    i = tl.arange(0, size)
    total = tl.zeros((size,), tl.float32)
    for k in range(5):
        value = tl.load(x + i, mask=i < size - k, other=0.0)
        if k % 2 == 0:
            total += value
        else:
            total -= expression_here
    tl.store(out + i, total)


@dataclass(frozen=True)
class Case:
    """One test: a template, what is filled in, the types of its operands and the elements of its result."""

    template: Any
    expression: str
    types: tuple[torch.dtype, torch.dtype]
    size: int = 128


INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.float32, torch.float64)


def cases() -> Iterator[Case]:
    """All tests; none with bf16, which Triton's interpreter gets wrong with NumPy 2.4."""
    for operator, types in itertools.product(("+", "-", "*", "==", "<"), itertools.product(INTEGERS + FLOATS, FLOATS)):
        yield Case(two_operands, f"x {operator} y", types)
    for operator, types in itertools.product(("&", "|", "^", "//", "%"), itertools.product(INTEGERS, INTEGERS[:2])):
        yield Case(two_operands, f"x {operator} y", types)
    functions = ("tl.exp(x)", "tl.sin(x)", "tl.sqrt(x)", "tl.abs(x)", "-x", "tl.where(x > 2, x, 0)", "x * x + 1")
    for function, kind in itertools.product(functions, FLOATS[1:]):
        yield Case(one_operand, function, (kind, kind))
    for function, kind in itertools.product(("sum", "max", "min"), FLOATS[1:] + INTEGERS[2:]):
        yield Case(rows, f"tl.{function}(x, axis=1)", (kind, kind), 8)
    for k in range(24):
        yield Case(loop, f"value * {k}.5", (torch.float32, torch.float32))


def filled(case: Case, *, is_interpreted: bool) -> Any:
    """A kernel that nobody has launched, as Triton's tests make them."""
    if not is_interpreted:
        kernel = triton.JITFunction(case.template.fn)
        kernel._unsafe_update_src(kernel.src.replace("expression_here", case.expression))
        return kernel
    names: dict[str, Any] = {}
    text = textwrap.dedent(inspect.getsource(case.template.fn)).replace("expression_here", case.expression)
    exec(text, globals(), names)
    return names[case.template.fn.__name__]


def run(case: Case, contender: str) -> Any:
    """Do one test; gives the result of the kernel."""
    random = np.random.default_rng(0)
    x, y = (torch.from_numpy(random.integers(1, 9, 128)).to(kind) for kind in case.types)
    kind = torch.promote_types(*case.types) if case.template is two_operands else case.types[0]
    out = torch.zeros(case.size, dtype=kind)
    if contender != "no launch":
        kernel = filled(case, is_interpreted=contender == CONTENDERS[-1])
        kernel[(1,)](x, y, out, size=128)
    expected = out
    if case.template is two_operands:
        expected = eval(case.expression, {"x": x, "y": y}).to(kind)
    if contender == "no launch":
        out.copy_(expected)
    np.testing.assert_allclose(out.double().numpy(), expected.double().numpy(), rtol=0.02)
    return out


def measure(contender: str) -> dict[str, float]:
    """Milliseconds of CPU time per test, all in one process."""
    block: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if contender in ("interpret", "check"):
        block = getattr(importlib.import_module("bragg.debug"), contender)()
    tests = list(cases())
    with block:
        start = time.process_time()
        for case in tests:
            run(case, contender)
        return {"ms": (time.process_time() - start) / len(tests) * 1e3, "tests": len(tests)}


def main() -> None:
    """Measure every contender in processes of its own, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        print(json.dumps(measure(options.contender)))
        return
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    found: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for contender in CONTENDERS:
            os.environ["TRITON_INTERPRET"] = "1" if contender == CONTENDERS[-1] else "0"
            one = harness.in_child([__file__, "--contender", contender], TIMEOUT_S)
            if "error" in one:
                sys.exit(f"{contender}: {one['error']}")
            found.setdefault(contender, []).append(one["ms"])
    upstream = statistics.median(found[CONTENDERS[-1]])
    harness.report("debug_unseen", [_row(name, times, upstream) for name, times in found.items()], options.out)


def _row(name: str, times: list[float], upstream: float) -> dict[str, Any]:
    median = statistics.median(times)
    return {
        "contender": name,
        "ms per test": round(median, 3),
        "fastest": round(min(times), 3),
        "of Triton's interpreter": round(median / upstream, 2),
    }


if __name__ == "__main__":
    main()
