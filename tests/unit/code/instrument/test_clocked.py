"""Machine code with clocks: that of the kernel stands in it as it is, where blocks without clocks execute it."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from functools import cache

import pytest

from bragg.code.instrument.assembling import Binary, assemble, assemble_as, find_ptxas, limited, target_of
from bragg.code.instrument.blocks import Activity, read_kernel
from bragg.code.instrument.clocked import Clocked, Tools, clocked_in_part
from bragg.code.instrument.machine_code import is_inside, with_code_of
from bragg.code.instrument.segments import Activities
from bragg.code.sass.disassembler import Listing, disassemble, find_disassembler

triton = pytest.importorskip("triton")

from tests.support.timed_kernels import compiled  # noqa: E402

TOOL = find_disassembler(os.environ)
EVERYTHING = Activities(frozenset(Activity))

needs_disassembler = pytest.mark.skipif(TOOL is None, reason="there is no nvdisasm")


@cache
def made(name: str, capability: int = 90, *, has_tool: bool = True) -> tuple[Binary, Clocked]:
    """A kernel without clocks, and with them in part of its blocks."""
    ptx = compiled(name, capability).asm["ptx"]
    tools = Tools(find_ptxas(triton, target_of(ptx), os.environ), [], 60, TOOL if has_tool else None)
    plain = assemble(tools.ptxas, ptx, [], 60)
    return plain, clocked_in_part(read_kernel(ptx), EVERYTHING, plain, tools)


@cache
def listed(cubin: bytes) -> Listing:
    assert TOOL is not None
    return disassemble(TOOL, cubin, 60)


@needs_disassembler
@pytest.mark.parametrize("name", ["matmul8", "matmul_tma8", "softmax"])
def test_blocks_without_clocks_execute_the_kernel_itself(name: str) -> None:
    plain, found = made(name)
    assert found.is_rest_exact
    assert "bragg_copy" not in found.instrumented.text
    (code,), (whole,) = listed(plain.cubin).values(), listed(found.binary.cubin).values()
    assert is_inside(code, whole)
    start = next(
        at for at in whole if at and [whole.get(at + n * 16) for n in range(4)] == [code[n * 16] for n in range(4)]
    )
    assert start % 128 == 0
    for at, text in code.items():
        assert whole[start + at].partition(" 0x")[0] == text.partition(" 0x")[0]
    before = [whole[start - 16 * n] for n in (1, 2)]
    assert before == ["NOP ;", "NOP ;"]
    ahead = next(text for at, text in whole.items() if text.startswith("@") and "BRA" in text)
    assert start - 128 - 32 <= int(ahead.rpartition("0x")[2].rstrip(" ;"), 16) <= start - 32


@needs_disassembler
def test_what_the_branch_leaves_under_way_is_waited_for_first() -> None:
    def waiting(binary: Binary) -> int:
        """Idle instructions that wait for all six scoreboards."""
        image = binary.cubin
        idle = struct.pack("<Q", 0x7918)
        found = [struct.unpack_from("<Q", image, at + 8)[0] for at in range(len(image)) if image.startswith(idle, at)]
        return sum(each >> 52 & 0x3F == 0x3F for each in found)

    plain, found = made("matmul8")
    assert waiting(plain) == 0
    assert waiting(found.binary) >= 2


@needs_disassembler
def test_registers_suffice_for_both() -> None:
    plain, found = made("matmul8")
    assert found.is_rest_exact
    assert found.binary.registers >= plain.registers
    info = bytes([4, 0x2F, 8, 0])
    at = found.binary.cubin.index(info)
    assert struct.unpack_from("<I", found.binary.cubin, at + 8)[0] == found.binary.registers


@needs_disassembler
def test_code_that_calls_is_copied_as_ptx() -> None:
    plain, found = made("matmul", 80)
    (code,) = listed(plain.cubin).values()
    assert any("CALL" in text for text in code.values())
    assert not found.is_rest_exact
    assert "bragg_copy" in found.instrumented.text


@needs_disassembler
def test_where_the_driver_may_assemble_anew_it_is_copied_as_ptx() -> None:
    plain, found = made("copy", 100)
    assert b".nv.capmerc.text.copy" in plain.cubin
    assert not found.is_rest_exact


@needs_disassembler
@pytest.mark.parametrize("text", ["USETMAXREG.DEALLOC.CTAPOOL 0x18 ;", "CALL.REL.NOINC 0x20 ;", "LDC R1, c[0x4][RZ] ;"])
def test_code_that_depends_on_its_place_or_on_the_warp_is_refused(text: str) -> None:
    plain, _ = made("copy")
    with pytest.raises(ValueError, match="depends on its place"):
        with_code_of(plain, {"copy": {0: text}}, plain, listed(plain.cubin), "copy")


def test_without_a_disassembler_it_is_copied_as_ptx() -> None:
    _, found = made("copy", has_tool=False)
    assert (found.is_rest_exact, found.copies) == (False, 2)
    assert "pmevent" not in found.instrumented.text


@needs_disassembler
def test_code_that_has_no_room_is_refused() -> None:
    plain, _ = made("copy")
    with pytest.raises(ValueError, match="ptxas kept no room"):
        with_code_of(plain, listed(plain.cubin), plain, listed(plain.cubin), "copy")
    with pytest.raises(ValueError, match="a stack"):
        with_code_of(replace(plain, stack_bytes=8), listed(plain.cubin), plain, listed(plain.cubin), "copy")


def test_registers_that_do_not_suffice_are_not_limited() -> None:
    ptx = compiled("matmul_tma8", 100).asm["ptx"]
    ptxas = find_ptxas(triton, target_of(ptx), os.environ)
    plain = replace(assemble(ptxas, ptx, [], 60), registers=64)
    with pytest.raises(ValueError, match="Insufficient registers"):
        assemble(ptxas, limited(ptx, 64), [], 60)
    assert assemble_as(plain, ptxas, ptx, [], 60).registers > 64
