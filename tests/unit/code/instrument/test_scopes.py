"""Scopes of a kernel: found in its source, gone from what is compiled, timed where their statements went."""

from __future__ import annotations

import inspect
import re

import pytest

import bragg
from bragg.code.instrument.blocks import read_kernel
from bragg.code.instrument.rewriting import instrument
from bragg.code.instrument.scopes import ScopeLines, scopes_of
from bragg.code.instrument.segments import MAX_WORDS, Scopes, frames_of
from bragg.record.instrument.compiled_kernel import source_scopes

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource, CompilationError  # noqa: E402

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


def scopes() -> ScopeLines:
    lines, first = inspect.getsourcelines(timed_kernels.matmul_scoped.fn)
    return scopes_of("".join(lines), first)


def test_the_innermost_scope_of_a_line_counts() -> None:
    found = scopes_of(SOURCE, 10)
    assert found.by_line == {13: "outer", 14: "outer", 15: "inner", 16: "outer", 20: "last", 21: "last"}
    assert found.by_first_line == {12: "outer", 14: "inner", 20: "last"}
    assert scopes_of("def broken(", 1) == ({}, {}, {})


PROTONS = """
{imported}

@triton.jit
def kernel(x):
    with {prefix}scope("outer"):
        a = 1
        {prefix}enter_scope("inner")
        b = 2
        {prefix}exit_scope("inner")
    event = {prefix}allocate_event("copy")
    {prefix}start_event(event)
    other.enter_scope("no")
    c = 3
    other.exit_scope("no")

@triton.jit
def partition(event):
    {prefix}end_event(event)
"""


@pytest.mark.parametrize(
    ("imported", "prefix"),
    [
        ("import triton.profiler.language as pl", "pl."),
        ("from triton.profiler import language", "language."),
        ("import triton.profiler as proton", "proton.language."),
        ("from triton import profiler", "profiler.language."),
        ("import bragg.proton.language", "bragg.proton.language."),
        (
            "from triton.profiler.language import scope, enter_scope, exit_scope\n"
            "from triton.profiler.language import allocate_event, end_event, start_event",
            "",
        ),
    ],
)
def test_those_of_protons_language_count(imported: str, prefix: str) -> None:
    found = scopes_of(PROTONS.format(imported=imported, prefix=prefix), 1 - imported.count("\n"))
    assert found.by_line == {7: "outer", 8: "outer", 9: "inner", 10: "outer"}
    assert {line: (call.name, call.begins, call.has_value) for line, call in found.events.items()} == {
        12: ("copy", True, False),
        19: ("copy", False, False),
    }
    assert scopes_of(PROTONS.format(imported="import other as pl", prefix="pl."), 1) == ({}, {}, {})


def test_scopes_compile_to_nothing() -> None:
    def instructions(name: str) -> list[str]:
        text = compiled(name).asm["ptx"].replace(timed_kernels.KERNELS[name][0].__name__, "kernel")
        code = [line.partition("//")[0].strip() for line in text[: text.index(".section")].splitlines()]
        return [line for line in code if line and not re.match(r"\.(loc|file)|\$L__tmp", line)]

    assert instructions("matmul_scoped") == instructions("matmul_tma")


def test_a_scope_is_one_stretch_where_its_statements_are_neighbours() -> None:
    wanted = Scopes(*scopes()[:2], timed_kernels.__file__)
    frames = instrument(read_kernel(compiled("matmul_scoped").asm["ptx"]), wanted).frames
    loop = [each for frame in frames for each in frame.segments if each.in_loop]
    assert {each.does for each in loop} == {"load", "multiply"}
    assert {each.place[-1].line for each in loop if each.does == "multiply"} == {
        line_of("matmul_scoped", "total = tl.dot")
    }
    assert not any(each.is_wait for each in loop)


def loop_stretches(text: str) -> list[tuple[str, int, int]]:
    """Scope and readings of each stretch of the loop that multiplies."""
    kernel = compiled("matmul_scoped_pointers8")
    code = read_kernel(text)
    scopes = source_scopes(kernel, code)
    assert scopes is not None
    (frame,) = (frame for frame in frames_of(code, scopes) if len(frame.segments) > 2)
    return [(each.does, each.start, each.end) for each in frame.segments]


def test_scopes_with_nothing_but_addresses_between_them_share_a_reading() -> None:
    text = compiled("matmul_scoped_pointers8").asm["ptx"]
    assert loop_stretches(text) == [("load", 0, 1), ("multiply", 1, 2), ("load", 2, 3)]
    at = text.index("\tbar.sync", text.index("wgmma.wait_group"))
    with_floats = f"{text[:at]}\tex2.approx.ftz.f32 \t%r1, %r2;\n{text[at:]}"
    assert loop_stretches(with_floats) == [("load", 0, 1), ("multiply", 1, 2), ("load", 3, 4)]


@pytest.mark.parametrize("capability", [90, 100])
def test_a_value_is_stored_beside_the_clocks(capability: int) -> None:
    kernel = compiled("matmul_valued", capability)
    code = read_kernel(kernel.asm["ptx"])
    wanted = source_scopes(kernel, code)
    assert wanted is not None
    frames = instrument(code, wanted).frames
    (loop,) = [frame for frame in frames if any(each.in_loop for each in frame.segments) and frame.values]
    assert [(each.scope, each.value.type) for each in loop.values] == [("load", "i32"), ("multiply", "f32")]
    assert [each.place[-1].line for each in loop.values] == [
        line_of("matmul_valued", '"load"'),
        line_of("matmul_valued", '"multiply"'),
    ]
    assert {each.scope for frame in frames for each in frame.values} == {"load", "multiply", "store"}
    assert all(frame.n_words <= MAX_WORDS for frame in frames)


def test_a_block_that_has_more_values_than_a_frame_has_several() -> None:
    value = "\t// begin inline asm\n\tmov.b32 %r1, %r2; // bragg value i32\n\t// end inline asm\n"
    text = f".version 8.0\n.target sm_90a\n.visible .entry k()\n{{\n\t.loc 1 3 1\n{value * 20}\tret;\n}}\n"
    kernel = read_kernel(f'{text}.file 1 "/src/k.py"\n')
    assert kernel.blocks[0].statements[0].value == ("%r1", "i32")
    frames = instrument(kernel, Scopes({4: "load"}, {3: "load"}, "k.py")).frames
    assert [(len(frame.values), frame.n_words, frame.n_stored_words) for frame in frames] == [(15, 15, 16), (5, 5, 8)]
    assert instrument(kernel, Scopes({4: "load"}, {2: "load"}, "k.py")).frames == []


@triton.jit
def given_a_block(x, size: tl.constexpr):
    with bragg.kernel_scope("load", tl.arange(0, size)):
        tl.store(x, 1)


def test_a_value_that_is_no_scalar_is_refused() -> None:
    source = ASTSource(given_a_block, {"x": "*fp32", "size": "constexpr"}, constexprs={"size": 128})
    with pytest.raises(CompilationError) as refused:
        triton.compile(source, target=GPUTarget("cuda", 90, 32))
    assert "a scalar of at most 32 bits" in str(refused.value.__cause__ or refused.value)


def test_in_python_a_scope_does_nothing() -> None:
    with bragg.kernel_scope("load", 5) as nothing:
        assert nothing is None
