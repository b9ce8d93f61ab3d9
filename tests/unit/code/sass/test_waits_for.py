"""Which instruction a warp waits for, by the registers of a listing."""

from __future__ import annotations

import os
import random

import pytest

from bragg.code.sass.disassembler import disassemble, find_disassembler
from bragg.code.sass.listing import Instruction
from bragg.code.sass.registers import effects_of
from bragg.code.sass.waits_for import Waits

triton = pytest.importorskip("triton")

from tests.support.timed_kernels import compiled  # noqa: E402

STEP = 16


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("LDG.E.128 R4, desc[UR12][R2.64] ;", "R4 R5 R6 R7", "R2 R3 UR12 UR13"),
        ("@!P0 LDG.E R4, desc[UR12][R2.64+0x10] ;", "R4", "P0 R2 R3 UR12 UR13"),
        ("LDS.64 R4, [R2+UR7] ;", "R4 R5", "R2 UR7"),
        ("LDSM.16.M88.4 R20, [R0+UR7] ;", "R20 R21 R22 R23", "R0 UR7"),
        ("STG.E.64 desc[UR18][R2.64], R20 ;", "", "R2 R3 R20 R21 UR18 UR19"),
        ("LDGSTS.E.BYPASS.128 [R51], desc[UR18][R4.64], P1 ;", "", "P1 R4 R5 R51 UR18 UR19"),
        ("IMAD.WIDE R34, R165.reuse, 0x2, R36 ;", "R34 R35", "R165 R36 R37"),
        ("IADD3 R164, P0, P1, R164, UR10, RZ ;", "P0 P1 R164", "R164 UR10"),
        ("IADD3.X R181, R182, UR11, RZ, P0, !PT ;", "R181", "P0 R182 UR11"),
        ("LEA R26, P2, R12, UR8, 0x1 ;", "P2 R26", "R12 UR8"),
        ("ISETP.GE.AND P0, PT, R0, c[0x0][UR4], P3 ;", "P0", "P3 R0 UR4"),
        ("LOP3.LUT P4, R4, R0, 0x7f, RZ, 0xc0, !PT ;", "P4 R4", "R0"),
        ("SHFL.BFLY PT, R0, R9, 0x10, 0x1f ;", "R0", "R9"),
        ("HMMA.16816.F32 R4, R8, R12, R4 ;", "R4 R5 R6 R7", "R10 R11 R12 R13 R4 R5 R6 R7 R8 R9"),
        ("CS2R R8, SRZ ;", "R8 R9", ""),
        ("DFMA R4, R6, R8, R10 ;", "R4 R5", "R10 R11 R6 R7 R8 R9"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR11+0x18000], R7 ;", "P0", "R7 UR11"),
        ("UIADD3 UR17, UR17, 0x1, URZ ;", "UR17", "UR17"),
        ("VOTEU.ALL UP0, P4 ;", "UP0", "P4"),
        ("R2UR UR10, R0 ;", "UR10", "R0"),
        ("BAR.SYNC.DEFER_BLOCKING 0x0 ;", "", ""),
        ("@P0 BRA 0x120 ;", "", "P0"),
    ],
)
def test_registers_of_an_instruction(text: str, writes: str, reads: str) -> None:
    effects = effects_of(text)
    assert sorted(effects.writes) == sorted(writes.split())
    assert sorted(effects.reads) == sorted(reads.split())


def test_a_product_of_a_warp_group_fills_its_tile() -> None:
    effects = effects_of("HGMMA.64x128x16.F32 R88, gdesc[UR8].tnspB, R88, gsb0 ;")
    tile = {f"R{88 + step}" for step in range(64)}
    assert effects.writes == tile
    assert effects.reads == tile | {"UR8", "UR9", "UR10", "UR11"}


def waits(*texts: str) -> Waits:
    return Waits([Instruction(STEP * number, text, (), 0) for number, text in enumerate(texts)])


def test_a_wait_in_a_loop_is_for_the_load_of_the_turn_before() -> None:
    found = waits(
        "LDG.E R4, desc[UR4][R2.64] ;",
        "IADD3 R2, R2, 0x10, RZ ;",
        "FADD R6, R6, R4 ;",  # in the first turn for the load before the loop, then for that at its end
        "LDG.E R4, desc[UR4][R2.64] ;",
        "@P0 BRA 0x10 ;",
        "EXIT ;",
    )
    assert found.producers(2 * STEP, "long_scoreboard") == (0, 3 * STEP)
    assert found.producers(2 * STEP, "short_scoreboard") == ()
    assert found.producers(0x999, "long_scoreboard") == ()


def test_what_is_written_between_hides_a_load_unless_a_predicate_decides() -> None:
    plain, guarded = (waits("LDG.E R4, [R2] ;", f"{guard}MOV R4, 0x0 ;", "FADD R6, R6, R4 ;") for guard in ("", "@P1 "))
    assert plain.producers(2 * STEP, "long_scoreboard") == ()
    assert guarded.producers(2 * STEP, "long_scoreboard") == (0,)


def test_waits_for_groups_are_for_the_copies_or_products_before() -> None:
    copies = waits("LDGSTS.E [R1], [R2] ;", "LDGDEPBAR ;", "DEPBAR.LE SB0, 0x1 ;")
    assert copies.producers(2 * STEP, "long_scoreboard") == (0,)
    products = waits("HGMMA.64x8x16.F32 R4, gdesc[UR8], R4, gsb0 ;", "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;")
    assert products.producers(STEP, "gmma") == (0,)


@pytest.mark.skipif(find_disassembler(os.environ) is None, reason="needs nvdisasm, which Triton brings")
@pytest.mark.parametrize("name", ["softmax", "matmul", "matmul_tma"])
def test_every_producer_fills_what_is_read_on_a_path_without_another_writer(name: str) -> None:
    tool = find_disassembler(os.environ)
    assert tool is not None
    (listing,) = disassemble(tool, compiled(name).asm["cubin"], 60).values()
    code = [Instruction(offset, text, (), 0) for offset, text in listing.items()]
    waits = Waits(code)
    found = 0
    for instruction in random.Random(3).sample(code, 80):
        reads = effects_of(instruction.text).reads
        for reason in ("long_scoreboard", "short_scoreboard"):
            producers = waits.producers(instruction.offset_bytes, reason)
            found += len(producers)
            if "DEPBAR" not in instruction.text:
                assert all(effects_of(listing[each]).writes & reads for each in producers)
    assert found > 10


def test_the_load_of_a_softmax_is_what_its_conversion_waits_for() -> None:
    tool = find_disassembler(os.environ)
    if tool is None:
        pytest.skip("needs nvdisasm, which Triton brings")
    (listing,) = disassemble(tool, compiled("softmax").asm["cubin"], 60).values()
    waits = Waits([Instruction(offset, text, (), 0) for offset, text in listing.items()])
    offset = next(at for at, text in listing.items() if text.startswith("HADD2.F32"))
    (load,) = waits.producers(offset, "long_scoreboard")
    assert "LDG.E.128" in listing[load]
