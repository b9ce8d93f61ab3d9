from __future__ import annotations

from pathlib import Path

import pytest

from bragg.code.cubin import Cubin
from bragg.code.source_place import SourcePlace

CUBINS = Path(__file__).parents[2] / "golden" / "cubins"


def cubin(name: str) -> Cubin:
    return Cubin.of((CUBINS / f"{name}.cubin").read_bytes())


def test_instructions_of_a_kernel_have_their_chain_and_their_text() -> None:
    code = cubin("nvcc-13.5-inlined-sm80").code("_Z5firstPKfPfi", {0x10: "S2R R0, SR_CTAID.X ;"}, "")
    assert [instruction.offset_bytes for instruction in code[:3]] == [0x00, 0x10, 0x20]
    assert [instruction.text for instruction in code[:3]] == ["", "S2R R0, SR_CTAID.X ;", ""]
    assert code[0].chain == (SourcePlace("/kernels/inlined.cu", 10),)
    deepest = max((instruction.chain for instruction in code), key=len)
    assert [place.function for place in deepest] == ["_Z6squaref", "_Z4polyf", "_Z6sum_ofILi4EEfPKf", ""]


def test_every_row_is_that_of_the_golden_file() -> None:
    _, *rows = (CUBINS / "triton-3.9-softmax-sm90.lines").read_text().splitlines()
    found = []
    for instruction in cubin("triton-3.9-softmax-sm90").code("softmax", {}, ""):
        chain = " < ".join(f"{place.file}:{place.line}" for place in instruction.chain)
        found.append((instruction.offset_bytes, f"{instruction.ptx_line} {chain}".strip()))
    changes = [row for before, row in zip([(0, ""), *found], found, strict=False) if row[1] != before[1]]
    assert [f"  {offset:#06x} {text}" for offset, text in changes] == rows


def test_places_of_the_ptx_count_where_it_has_any() -> None:
    image = cubin("triton-3.7-with-call-sm80")
    (before, *_) = [instruction for instruction in image.code("with_call", {}, "") if instruction.ptx_line]
    ptx = '.file 1 "/k/a.py"\n' + "\n" * (before.ptx_line - 3) + ".loc 1 7 9 // a.py:7:9 @[ a.py:20:4 ]\nadd;\n"
    (after, *_) = [instruction for instruction in image.code("with_call", {}, ptx) if instruction.ptx_line]
    assert after.ptx_line == before.ptx_line
    assert after.chain == (SourcePlace("/k/a.py", 7, 9), SourcePlace("/k/a.py", 20, 4))


def test_ptx_is_kept_by_the_cubin() -> None:
    assert [text.count(".visible .entry _Z") for text in cubin("nvcc-13.5-linked-sm100").ptx] == [1, 1]


def test_what_is_no_cubin_and_a_kernel_that_is_not_in_it_are_told() -> None:
    with pytest.raises(ValueError, match="not an ELF file"):
        Cubin.of(b"\0" * 64)
    with pytest.raises(ValueError, match="no kernel matmul"):
        cubin("triton-3.9-softmax-sm90").code("matmul", {}, "")
