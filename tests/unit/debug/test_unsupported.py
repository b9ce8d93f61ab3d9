# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""What the engine does not execute ends the launch with a line that names it; nothing is approximated."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import Unsupported
from bragg.errors import UsageError

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402


@triton.jit
def thread_number(x, y):
    tl.inline_asm_elementwise("mov.u32 $0, %tid.x;", "=r,r", [tl.load(x)], dtype=tl.int32, is_pure=True, pack=1)


@tl.core.builtin
def is_constant(value, _semantic=None):
    return isinstance(value, tl.constexpr)


@triton.jit
def asks_the_compiler(x, y):
    tl.static_assert(not is_constant(tl.load(x)))


CASES = {
    asks_the_compiler: r"test_unsupported.py:\d+: is_constant is decorated with @builtin, and makes Triton's IR itself",
    thread_number: r"test_unsupported.py:\d+: %tid.x in inline assembly is not supported",
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.fn.__name__)
def test_construct_is_refused_by_name(kernel: Any) -> None:
    x, y = np.zeros((32, 32), "f4"), np.zeros((32, 32), "f4")
    with pytest.raises(Unsupported, match=CASES[kernel]) as error:
        bragg.debug.interpret(kernel)[(2,)](x, y)
    assert error.value.hint
    assert error.value.exit_code == 2


@triton.jit
def copy(x, out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))


def launch(*arguments: Any, **named: Any) -> None:
    bragg.debug.interpret(copy)[(1,)](*arguments, **named)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((object(), np.zeros(4)), {"BLOCK": 4}, "the argument x is object"),
        ((np.zeros(4, "c8"), np.zeros(4)), {"BLOCK": 4}, "x has elements of complex64"),
        ((np.zeros(4), np.zeros(4)), {"BLOCK": 4, "BLOK": 4}, "copy has no parameter 'BLOK'"),
        ((np.zeros(4), np.zeros(4)), {}, "missing a required argument: 'BLOCK'"),
        ((2**64, np.zeros(4)), {"BLOCK": 4}, "no integer type of Triton holds"),
    ],
)
def test_bad_argument_is_named(arguments: tuple[Any, ...], named: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        launch(*arguments, **named)


def test_options_of_the_compiler_do_not_reach_the_kernel() -> None:
    out = np.zeros(4, "f4")
    launch(np.ones(4, "f4"), out, BLOCK=4, num_warps=8, num_stages=3)
    assert out.tolist() == [1, 1, 1, 1]


def test_read_only_arrays_can_be_read_and_not_written() -> None:
    x = np.ones(4, "f4")
    x.flags.writeable = False
    launch(x, np.zeros(4, "f4"), BLOCK=4)
    with pytest.raises(bragg.debug.faults.KernelFault, match="out is read-only"):
        launch(np.ones(4, "f4"), x, BLOCK=4)


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), (-1,)])
def test_bad_grid_is_a_usage_error(grid: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="grid"):
        bragg.debug.interpret(copy)[grid](np.zeros(4), np.zeros(4), BLOCK=4)


def test_torch_tensors_are_used_in_place() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(8, dtype=torch.bfloat16)[::2]
    out = torch.zeros(4, dtype=torch.bfloat16)
    launch(x.contiguous(), out, BLOCK=4)
    assert out.tolist() == [0, 2, 4, 6]


def test_decorated_kernel_runs_as_before_outside_of_the_block() -> None:
    before = triton.runtime.jit.JITFunction.run
    with bragg.debug.interpret():
        assert triton.runtime.jit.JITFunction.run is not before
    assert triton.runtime.jit.JITFunction.run is before
