"""Scopes of a kernel: found in its source, gone from what is compiled, timed where their statements went."""

from __future__ import annotations

import inspect
import re

import pytest

import bragg
from bragg.code.instrument.blocks import read_kernel
from bragg.code.instrument.rewriting import instrument
from bragg.code.instrument.scopes import scopes_of
from bragg.code.instrument.segments import Scopes

triton = pytest.importorskip("triton")

from tests.support import timed_kernels  # noqa: E402
from tests.support.timed_kernels import compiled, line_of  # noqa: E402

SOURCE = """
    def kernel(x):
        with bragg.kernel_scope("outer"):
            a = 1
            with kernel_scope("inner"):
                b = 2
            c = 3
        with tl.range(x), bragg.scope("no"):
            with kernel_scope(name):
                d = 4
        with kernel_scope("last"): e = (
            5)
"""


def scopes() -> dict[int, str]:
    lines, first = inspect.getsourcelines(timed_kernels.matmul_scoped.fn)
    return scopes_of("".join(lines), first)


def test_the_innermost_scope_of_a_line_counts() -> None:
    assert scopes_of(SOURCE, 10) == {13: "outer", 14: "outer", 15: "inner", 16: "outer", 20: "last", 21: "last"}
    assert scopes_of("def broken(", 1) == {}


def test_scopes_compile_to_nothing() -> None:
    def instructions(name: str) -> list[str]:
        text = compiled(name).asm["ptx"].replace(timed_kernels.KERNELS[name][0].__name__, "kernel")
        code = [line.partition("//")[0].strip() for line in text[: text.index(".section")].splitlines()]
        return [line for line in code if line and not re.match(r"\.(loc|file)|\$L__tmp", line)]

    assert instructions("matmul_scoped") == instructions("matmul_tma")


def test_a_scope_is_one_stretch_where_its_statements_are_neighbours() -> None:
    wanted = Scopes(scopes(), timed_kernels.__file__)
    frames = instrument(read_kernel(compiled("matmul_scoped").asm["ptx"]), wanted).frames
    loop = [each for frame in frames for each in frame.segments if each.in_loop]
    assert {each.does for each in loop} == {"load", "multiply"}
    assert {each.place[-1].line for each in loop if each.does == "multiply"} == {
        line_of("matmul_scoped", "total = tl.dot")
    }
    assert not any(each.is_wait for each in loop)


def test_in_python_a_scope_does_nothing() -> None:
    with bragg.kernel_scope("load") as nothing:
        assert nothing is None
