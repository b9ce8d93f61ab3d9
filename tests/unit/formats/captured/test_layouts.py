"""The writer, the reader and CAPTURE.md agree on the chunks of a capture."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from bragg.formats.captured.chunks import LAYOUTS, ChunkType

_ROOT = Path(__file__).parents[4]
_DTYPES = {"u32": "<u4", "u64": "<u8", "i64": "<i8", "f64": "<f8"}
Layouts = dict[str, dict[str, np.dtype]]


def writers() -> tuple[dict[str, int], Layouts]:
    """Numbers and columns in the table of the writer."""
    text = (_ROOT / "native/data/chunk_layouts.h").read_text()
    numbers = {name: int(number) for name, number in re.findall(r"^  (\w+) = (\d+),$", text, re.MULTILINE)}
    rows = re.findall(r'\{ChunkType::(\w+), "(\w+)",\s*((?:"[^"]*"\s*)+)\}', text)
    layouts = {name: columns("".join(re.findall(r'"([^"]*)"', texts))) for _, name, texts in rows}
    assert {name.replace("_", "").lower() for name in layouts} == {row[0].lower() for row in rows}
    return numbers, layouts


def columns(text: str) -> dict[str, np.dtype]:
    return {name: np.dtype(_DTYPES[kind]) for kind, name in (column.split() for column in text.split(", "))}


def documented() -> tuple[dict[str, int], Layouts]:
    """The same in CAPTURE.md, of chunks that consist of columns."""
    rows = re.findall(
        r"^\| (\d+) \| ([A-Z_]+) \| (.*) \|$", (_ROOT / "native/data/CAPTURE.md").read_text(), re.MULTILINE
    )
    found = {
        name: {
            column: np.dtype(_DTYPES[kind]) for kind, column in re.findall(r"\b([uif]\d\d) (\w+)\[rows\]", description)
        }
        for _, name, description in rows
    }
    return {name: int(number) for number, name, _ in rows}, found


def test_the_reader_reads_what_the_writer_writes() -> None:
    numbers, layouts = writers()
    assert {name.lower(): number for name, number in numbers.items()} == {
        kind.name.replace("_", "").lower(): kind.value for kind in ChunkType
    }
    assert layouts == {kind.name: layout for kind, layout in LAYOUTS.items()}
    assert [list(layouts[kind.name]) for kind in LAYOUTS] == [list(layout) for layout in LAYOUTS.values()]


def test_the_chunks_are_documented_as_they_are() -> None:
    numbers, layouts = documented()
    assert numbers == {kind.name: kind.value for kind in ChunkType}
    assert {name: list(layouts[name].items()) for name in writers()[1]} == {
        kind.name: list(layout.items()) for kind, layout in LAYOUTS.items()
    }
