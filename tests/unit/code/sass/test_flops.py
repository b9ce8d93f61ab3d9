"""Floating-point operations of instructions."""

from __future__ import annotations

import pytest

from bragg.code.sass.flops import InstructionFlops, flops_of


@pytest.mark.parametrize(
    ("instruction", "of_thread", "of_warp", "bits"),
    [
        ("FFMA.FTZ R2, R3, R4, R5 ;", 2, 0, 32),
        ("@!P0 FADD R2, R3, R4 ;", 1, 0, 32),
        ("HFMA2.MMA.BF16_V2 R2, R3, R4, R5 ;", 4, 0, 16),
        ("HFMA2.MMA R4, -RZ, RZ, 1.875, 0 ;", 0, 0, 0),
        ("HADD2.F32 R10, -RZ, R8.H0_H0 ;", 0, 0, 0),
        ("DFMA R2, R4, R6, R8 ;", 2, 0, 64),
        ("FSETP.GT.AND P0, PT, R2, R3, PT ;", 0, 0, 0),
        ("MUFU.EX2 R2, R3 ;", 0, 0, 0),
        ("LDC R1, c[0x0][0x28] ;", 0, 0, 0),
        ("HMMA.16816.F32 R4, R8, R12, R4 ;", 0, 2 * 16 * 8 * 16, 16),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R4 ;", 0, 2 * 16 * 8 * 8, 32),
        ("DMMA.884 R4, R8, R12, R4 ;", 0, 2 * 8 * 8 * 4, 64),
        ("HGMMA.64x128x16.F32 R24, gdesc[UR4], R24, gsb0 ;", 0, 2 * 64 * 128 * 16 // 4, 16),
        ("@UP0 HGMMA.64x64x8.F32.TF32 R24, R4, gdesc[UR4], R24 ;", 0, 2 * 64 * 64 * 8 // 4, 32),
        ("QGMMA.64x64x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24 ;", 0, 2 * 64 * 64 * 32 // 4, 8),
        ("IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R4 ;", 0, 0, 0),
        ("", 0, 0, 0),
    ],
)
def test_operations_of_an_instruction(instruction: str, of_thread: int, of_warp: int, bits: int) -> None:
    assert flops_of(instruction) == InstructionFlops(of_thread, of_warp, bits)


@pytest.mark.parametrize(
    "instruction", ["UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8] ;", "HMMA.SP.16832.F32 R4, R8, R12, R4 ;"]
)
def test_what_the_text_does_not_tell_is_not_known(instruction: str) -> None:
    assert flops_of(instruction) is None
