"""Events of a kernel: found in its source, placed in its code, their begins matched with their ends."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import bragg
from bragg.code.instrument.blocks import Value, read_kernel
from bragg.code.instrument.events import intervals_of
from bragg.code.instrument.readings import read_frames, read_headers
from bragg.code.instrument.rewriting import HEADER_BYTES, MAGIC, Instrumented, instrument
from bragg.code.instrument.scopes import scopes_of
from bragg.code.instrument.segments import Event, EventCall, Frame, ScopeValue, Segment
from bragg.code.instrument.storing import FRAME, WARP_BYTES
from bragg.record.instrument.compiled_kernel import source_scopes

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

SOURCE = """
    def kernel(x):
        bragg.kernel_event_begin("copy", step)
        kernel_event_end("copy", value=step)
        bragg.kernel_event_begin("all")
        kernel_event_begin(name)

    def other(x):
        bragg.kernel_event_end("all")
"""


def test_events_are_found_with_their_functions() -> None:
    assert scopes_of(SOURCE, 10).events == {
        12: EventCall("copy", True, True, 11, 15),
        13: EventCall("copy", False, True, 11, 15),
        14: EventCall("all", True, False, 11, 15),
        18: EventCall("all", False, False, 17, 18),
    }


@triton.jit
def plain(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for step in range(n):
        value = tl.load(x + step * BLOCK + at)
        tl.store(y + step * BLOCK + at, value + 1)


@triton.jit
def marked(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for step in range(n):
        bragg.kernel_event_begin("copy")
        value = tl.load(x + step * BLOCK + at)
        tl.store(y + step * BLOCK + at, value + 1)
        bragg.kernel_event_end("copy")


@triton.jit
def valued(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for step in range(n):
        bragg.kernel_event_begin("copy", step)
        value = tl.load(x + step * BLOCK + at)
        tl.store(y + step * BLOCK + at, value + 1)
        bragg.kernel_event_end("copy", step)


@cache
def compiled(kernel: Any) -> Any:
    types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(kernel, types, constexprs={"BLOCK": 1024})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_stages": 1})


def instructions(kernel: Any) -> list[str]:
    text = compiled(kernel).asm["ptx"].replace(kernel.__name__, "kernel")
    code = [line.partition("//")[0].strip() for line in text[: text.index(".section")].splitlines()]
    return [line for line in code if line and not re.match(r"\.(loc|file)|\$L__tmp", line)]


def frames(kernel: Any) -> list[Frame]:
    code = read_kernel(compiled(kernel).asm["ptx"])
    wanted = source_scopes(compiled(kernel), code)
    assert wanted is not None
    return list(instrument(code, wanted).frames)


def line_of(kernel: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)
    return next(number for number, line in enumerate(lines, first) if text in line)


def test_an_event_without_a_value_compiles_to_nothing() -> None:
    assert instructions(marked) == instructions(plain)
    assert source_scopes(compiled(plain), read_kernel(compiled(plain).asm["ptx"])) is None


def test_an_event_without_a_value_is_around_its_neighbours() -> None:
    begin, end = frames(marked)
    assert [(each.event.name, each.event.begins) for each in (begin, end) if each.event] == [
        ("copy", True),
        ("copy", False),
    ]
    text = compiled(marked).asm["ptx"].splitlines()
    assert not begin.reads[0][1]
    assert end.reads[0][1]
    between = text[begin.reads[0][0] : end.reads[0][0] + 1]
    assert sum("ld.global" in line for line in between) == sum("ld.global" in line for line in text)
    assert sum("st.global" in line for line in between) == sum("st.global" in line for line in text)


def test_an_event_with_a_value_is_where_that_is_given() -> None:
    found = frames(valued)
    assert [
        (each.event.name, each.event.begins, len(each.values), each.n_stored_words) for each in found if each.event
    ] == [
        ("copy", True, 1, 4),
        ("copy", False, 1, 4),
    ]
    places = [each.event.place[-1].line for each in found if each.event]
    assert places == [line_of(valued, "kernel_event_begin"), line_of(valued, "kernel_event_end")]
    code = read_kernel(compiled(valued).asm["ptx"])
    wanted = source_scopes(compiled(valued), code)
    assert wanted is not None
    text = instrument(code, wanted).text
    for each in found:
        assert f"{{%bragg_w9, %bragg_e, {each.values[0].value.register}, %bragg_w9}}" in text


def test_in_python_an_event_does_nothing() -> None:
    bragg.kernel_event_begin("copy", 5)
    bragg.kernel_event_end("copy")


BEGIN, END = Event("copy", True, ()), Event("copy", False, ())
VALUE = (ScopeValue("copy", (), Value("%r1", "i32")),)
KERNEL = Instrumented(
    "",
    (
        Frame((), ((1, False),), (1, True), VALUE, BEGIN),
        Frame((), ((2, False),), (2, True), VALUE, END),
        Frame((), ((3, False),), (3, False), (), Event("all", True, ())),
        Frame((), ((4, True),), (4, True), (), Event("all", False, ())),
        Frame((Segment("load", False, (), True, 0, 1),), ((5, False), (5, True)), (6, False)),
    ),
)
START = 2**32 - 40


def launch(*warps: list[tuple[int, ...]]) -> tuple[bytes, Any]:
    """Frames of each warp: number and words behind the first one; clocks count from its start."""
    memory = np.zeros((len(warps), WARP_BYTES // 4), np.uint32)
    headers = np.zeros((len(warps), HEADER_BYTES // 4), np.uint32)
    for warp, stored in enumerate(warps):
        at = 0
        for number, clock, *rest in stored:
            words = [FRAME | number << 8 | 1 + len(rest), (START + clock) % 2**32, *(each % 2**32 for each in rest)]
            memory[warp, at : at + len(words)] = words
            at += 4
        headers[warp, :8] = np.array([1000, START, 1500, START + 1000], np.uint64).view("<u4")
        headers[warp, 8:12] = MAGIC, 0, warp // 2, 4 * at
    return memory.tobytes(), read_headers(headers.tobytes())


def test_begins_of_one_warp_are_matched_with_ends_of_another_by_their_values() -> None:
    producer = [(0, 10, 0), (0, 20, 1), (0, 30, 2), (0, 500, 0), (0, 600, 9)]
    consumer = [(1, 110, 0), (1, 150, 2), (1, 170, 1), (1, 501, 0), (1, 700, -1)]
    (found,) = intervals_of(*_arguments(producer, consumer))
    assert found.value.tolist() == [0, 1, 2, 0]
    assert found.cycles.tolist() == [100, 150, 120, 1]
    assert found.warp.tolist() == [0] * 4
    assert found.unmatched == 2
    assert found.start_ns.tolist() == [1005, 1010, 1015, 1250]
    assert found.end_ns.tolist() == [1055, 1085, 1075, 1250]
    assert (found.begins, found.ends) == (BEGIN, END)


def test_events_without_values_end_in_the_order_of_their_begins() -> None:
    warp = [(2, 5), (2, 10), (3, 100), (3, 105), (3, 107)]
    (found,) = intervals_of(*_arguments(warp, [(2, 6), (3, 200)]))
    assert (found.cycles.tolist(), found.unmatched) == ([95, 95], 1)  # the first warp counts
    assert np.isnan(found.value).all()


def test_each_block_has_its_own_events() -> None:
    image, headers = launch([(0, 10, 3)], [], [(0, 20, 3)], [(1, 90, 3)])
    (found,) = intervals_of(image, KERNEL, headers, [0, 1, 2, 3], 2)
    assert (found.warp.tolist(), found.cycles.tolist(), found.unmatched) == ([2], [70], 1)


def test_events_are_no_segments_and_no_values_of_scopes() -> None:
    image, headers = launch([(0, 10, 3), (4, 20, 30), (1, 50, 3)], [])
    read = read_frames(image, KERNEL, headers, 2)
    assert (read.damaged, read.count.tolist(), read.cycles.tolist(), list(read.values)) == (
        0,
        [1],
        [[50, 0]],
        [],
    )  # 30 is START + 70


def _arguments(*warps: list[tuple[int, ...]]) -> Any:
    image, headers = launch(*warps)
    return image, KERNEL, headers, list(range(len(warps))), 2
