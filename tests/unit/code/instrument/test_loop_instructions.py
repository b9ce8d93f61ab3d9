"""Products, copies and waits in the loops of machine code."""

from __future__ import annotations

from bragg.code.instrument.loop_instructions import changes, loop_counts

CODE = """\
LDGSTS.E.128 [R2], [R4.64] ;
DEPBAR.LE SB0, 0x1 ;
HGMMA.64x128x16.F32 R24, gdesc[UR8], R24 ;
@P1 BRA 0x70 ;
LDGSTS.E.128 [R2+0x100], [R4.64] ;
@P0 BRA 0x10 ;
HGMMA.64x128x16.F32 R24, gdesc[UR8], R24 ;
EXIT ;
"""


def listing(code: str) -> dict[str, dict[int, str]]:
    return {"kernel": {16 * number: line for number, line in enumerate(code.splitlines())}}


def test_what_stands_before_and_behind_a_loop_is_not_counted() -> None:
    assert loop_counts(listing(CODE), "kernel") == {"DEPBAR": 1, "HGMMA": 1, "LDGSTS": 1}
    assert loop_counts(listing(CODE), "another") == {}


def test_code_out_of_line_does_not_make_a_loop_of_what_is_between() -> None:
    retry = ["SYNCS.PHASECHK P0, [R1]", "@!P0 BRA 0x60", "HGMMA R24, gdesc[UR8], R24", "@P1 BRA 0x0", "EXIT"]
    behind = ["UTMASTG.2D [UR4], [UR6]", "SYNCS R1", "BRA 0x0"]
    assert loop_counts(listing("\n".join([*retry, *behind])), "kernel") == {"HGMMA": 1}
    retry[3] = "NOP"
    assert loop_counts(listing("\n".join([*retry, *behind])), "kernel") == {}


def test_changes_are_of_as_many_copies() -> None:
    assert changes({"HGMMA": 8, "DEPBAR": 1}, {"HGMMA": 16, "DEPBAR": 2}, 2) == {}
    assert changes({"HGMMA": 8, "DEPBAR": 1}, {"HGMMA": 8, "DEPBAR": 9}, 1) == {"DEPBAR": (1, 9)}
