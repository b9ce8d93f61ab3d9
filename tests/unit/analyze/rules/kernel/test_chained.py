"""When a kernel goes on with what the one before has stored, program by program."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.kernel_facts import Configuration
from bragg.analyze.rules.kernel.chained import _Launch, _passed
from bragg.model import Place
from tests.support.profiles import profile_from_text

FIRST = """
def add(x, out, top, n, BLOCK):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n)
    tl.store(out + row * n + c, v, mask=c < n)
    tl.store(top + row, tl.max(v, axis=0))
"""
SECOND = """
def scale(y, most, n, BLOCK):
    c = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(y + row * n + c, mask=c < n)
    tl.store(y + row * n + c, v / tl.load(most + row), mask=c < n)
"""
LAUNCHES = ("add[(rows,)](a, b, self.top, n, **sizes)", "scale[(rows,)](b, self.top, n, **sizes)")


def launched(text: str, launch: str, grid: tuple[int, int, int] = (64, 1, 1)) -> _Launch:
    call, function = ast.parse(launch, mode="eval").body, ast.parse(text).body[0]
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Subscript)
    assert isinstance(function, ast.FunctionDef)
    profile, way = profile_from_text("root\n  k 1us"), Configuration(1, grid, (128, 1, 1), None, 32, 0, 0)
    kernel = HotKernel(profile, "k", np.zeros(2, np.bool_), 1.0, 1.0, None, None, (way,), {})
    return _Launch(kernel, Place(), ast.unparse(call.func.slice), _passed(call, function), function, None)


def test_programs_that_take_up_their_own_tiles_are_one_chain() -> None:
    first, second = launched(FIRST, LAUNCHES[0]), launched(SECOND, LAUNCHES[1])
    assert first.addresses["self.top", True] == second.addresses["self.top", False]
    assert second.goes_on(first)
    assert not first.goes_on(second)  # it loads nothing that the other stores


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tl.load(y + row * n + c, ", "tl.load(y + (row + 1) * n + c, "),  # of the next program
        ("tl.load(most + row)", "tl.load(most)"),  # of the first program
        ("    row = tl.program_id(0)\n", "    row = tl.program_id(0)\n    row += 1\n"),
        ("    row = tl.program_id(0)\n", "    for row in range(2):\n        pass\n    row = 1\n"),
        ("tl.load(most + row)", "shared(most)"),  # a function that is not read
        ("tl.store(y + row * n + c, v / ", "tl.atomic_add(y + row * n + c, v / "),
    ],
)
def test_programs_that_may_need_what_others_store_are_none(old: str, new: str) -> None:
    assert old in SECOND
    assert not launched(SECOND.replace(old, new), LAUNCHES[1]).goes_on(launched(FIRST, LAUNCHES[0]))


def test_what_the_first_reads_of_neighbours_must_not_be_overwritten() -> None:
    first = launched(
        FIRST.replace("tl.load(x + row * n", "tl.load(x + (row + 1) * n"), LAUNCHES[0].replace("(a, b", "(b, b")
    )
    assert not launched(SECOND, LAUNCHES[1]).goes_on(first)


@pytest.mark.parametrize(
    ("launch", "grid"),
    [
        (LAUNCHES[1].replace("(rows,)", "(rows // 2,)"), (64, 1, 1)),
        (LAUNCHES[1], (32, 1, 1)),
        (LAUNCHES[1].replace("**sizes", "**others"), (64, 1, 1)),  # another width of the tile
        (LAUNCHES[1].replace("(b, ", "(c, "), (64, 1, 1)),  # self.top alone is of the same program
    ],
)
def test_launches_of_other_programs_or_tensors(launch: str, grid: tuple[int, int, int]) -> None:
    assert launched(SECOND, launch, grid).goes_on(launched(FIRST, LAUNCHES[0])) == ("(c, " in launch)
