from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bragg.code.sass.listing import Instruction, format_listing, parse_listing
from bragg.code.source_place import SourcePlace

KERNEL = SourcePlace("/k/softmax.py", 23, 4, "softmax")
HELPER = SourcePlace("/k/softmax.py", 16, 14, "scale_rows")
CODE = [
    Instruction(0, "LDC R1, c[0x0][0x28] ;", (KERNEL,), 31),
    Instruction(16, "S2R R7, SR_TID.X ;", (KERNEL,), 31),
    Instruction(32, "", (SourcePlace("/lib/standard.py", 191, 40), HELPER, KERNEL), 120),
    Instruction(0x12340, "EXIT ;", (), 0),
]
TEXT = """\
.file 1 "/k/softmax.py"
.file 2 "/lib/standard.py"
.loc 1 23 4 "softmax" ptx 31
/*0000*/ LDC R1, c[0x0][0x28] ;
/*0010*/ S2R R7, SR_TID.X ;
.loc 2 191 40 @ 1 16 14 "scale_rows" @ 1 23 4 "softmax" ptx 120
/*0020*/
.loc
/*12340*/ EXIT ;
"""

NAMES = st.text(st.characters(blacklist_categories=["C", "Z"], blacklist_characters='"'), min_size=1, max_size=8)
PLACES = st.builds(
    SourcePlace, st.text("abc/.", min_size=1, max_size=6), st.integers(1, 999), st.integers(0, 99), NAMES | st.just("")
)
CHAINS = st.lists(PLACES, max_size=3).map(tuple)


def test_a_listing_reads_well() -> None:
    assert format_listing(CODE) == TEXT


def test_a_listing_says_all_of_its_instructions() -> None:
    assert parse_listing(TEXT) == CODE


def test_lines_that_are_none_of_it_are_passed_over() -> None:
    assert parse_listing("// a comment\n\n/*0010*/ NOP ;\n") == [Instruction(16, "NOP ;", (), 0)]


@given(st.lists(st.tuples(CHAINS, st.integers(0, 10_000), st.sampled_from(["NOP ;", "", "@!P0 BRA `(.L_x_1) ;"]))))
def test_what_was_written_is_read(rows: list[tuple[tuple[SourcePlace, ...], int, str]]) -> None:
    code = [Instruction(16 * index, text, chain, line) for index, (chain, line, text) in enumerate(rows)]
    assert parse_listing(format_listing(code)) == code
