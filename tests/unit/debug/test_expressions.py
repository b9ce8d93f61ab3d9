"""The source tells the address and mask of an access, and which lines feed another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg.debug.expressions import AccessText, access_text, feeding

SOURCE = """\
def kernel(x, y, out, n, window):
    i = tl.arange(0, 64)
    a = tl.load(x + i, mask=i < n)
    b, c = tl.load(x + i, i < n, 0.0), tl.load(y + i, mask=i < n, other=0.0)
    tl.store(out + i, a, mask=i < n)
    tile = tl.load(window, boundary_check=(0, 1), padding_option="zero")
    row = descriptor.load([0, 0])
    d, e = tl.load(p), tl.load(q)
    p, q = x + i, y + i
    moved = x + i
    other = y + i
    f = tl.load(moved) + tl.load(
        other, mask=i < n
    )
    tl.store(
        out + i,
        f,
    )
    total = a
    total += b
    tl.atomic_add(out, total)


def other(x):
    total = tl.load(x)
    return total
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE)
    return str(path)


@pytest.mark.parametrize(
    ("line", "kind", "tensor", "expected"),
    [
        (3, "load", "x", AccessText("x + i", "i < n", False)),
        (4, "load", "x", AccessText("x + i", "i < n", True)),
        (4, "load", "y", AccessText("y + i", "i < n", True)),
        (5, "store", "out", AccessText("out + i", "i < n", False)),
        (6, "load", "x", AccessText("window", "boundary_check=(0, 1)", True)),
        (7, "load", "x", AccessText("[0, 0]", "", True)),
        (8, "load", "x", AccessText()),
        (12, "load", "x", AccessText("x + i", "", False)),
        (12, "load", "y", AccessText("y + i", "i < n", False)),
        (21, "atomic", "out", AccessText("out", "", False)),
        (2, "load", "x", AccessText()),
    ],
)
def test_access_is_described(file: str, line: int, kind: str, tensor: str, expected: AccessText) -> None:
    assert access_text(file, line, kind, tensor) == expected


def test_places_that_feed_a_line(file: str) -> None:
    every = [(file, line) for line in range(1, 27)]
    assert [line for _, line in feeding(every, (file, 21))] == [2, 3, 4, 19, 20, 21]
    assert [line for _, line in feeding(every, (file, 5))] == [2, 3, 5]
    assert [line for _, line in feeding(every, (file, 26))] == [25, 26]
    assert feeding(every, (file, 23)) == every
    assert [line for _, line in feeding(every, (file, 15))] == [2, 10, 11, 12, 13, 14, 15]
    assert feeding([(file, 25)], (file, 5)) == [(file, 25)]


def test_a_file_that_cannot_be_read_tells_nothing() -> None:
    assert access_text("no such file", 3, "load", "x") == AccessText()
    assert feeding([("a", 1)], ("no such file", 3)) == [("a", 1)]


NAMED = """\
def kernel(x, n, m):
    i = tl.arange(0, 64) + 1
    inside = i < n
    mask = inside & (i != m)
    often = i < n
    often = i < m
    a = tl.load(x + i, mask=mask)
    b = tl.load(x + i, mask=often)
    c = tl.load(x + i, mask=late)
    late = i < n
"""


@pytest.mark.parametrize(("line", "mask"), [(7, "(i < n) & (i != m)"), (8, "often"), (9, "late")])
def test_masks_are_spelled_out_as_the_conditions_that_they_stand_for(tmp_path: Path, line: int, mask: str) -> None:
    path = tmp_path / "named.py"
    path.write_text(NAMED)
    assert access_text(str(path), line, "load", "x").mask == mask


MOVED = """\
def kernel(x, y, n):
    i = tl.arange(0, 64)
    x = x + tl.program_id(0) * n
    p = q + i
    q = p + y
    a = tl.load(x + i, mask=i < n)
    b = tl.load(q, mask=i < n)
"""


@pytest.mark.parametrize(
    ("line", "tensor", "address"), [(6, "x", "x + tl.program_id(0) * n + i"), (7, "y", "q + i + y")]
)
def test_a_pointer_in_its_own_value_is_what_it_was_before(tmp_path: Path, line: int, tensor: str, address: str) -> None:
    path = tmp_path / "moved.py"
    path.write_text(MOVED)
    assert access_text(str(path), line, "load", tensor).address == address
