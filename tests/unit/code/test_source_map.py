from __future__ import annotations

from bragg.code.sass.listing import Instruction, format_listing
from bragg.code.source_map import KernelCode, Stage, code_of_kernels, source_name
from bragg.code.source_place import SourcePlace

LOAD, CALL = SourcePlace("/k/a.py", 15, 14), SourcePlace("/k/a.py", 16, 14)
LIBRARY = SourcePlace("/x/triton/language/standard.py", 191, 40)

TTGIR = """\
#loc = loc("/k/a.py":16:14)
tt.load loc("/k/a.py":15:14)
arith.addf loc(callsite("/x/triton/language/standard.py":191:40 at #loc))
tt.splat loc("/k/a.py":15:30)
"""
PTX = """\
.file 1 "/k/a.py"
.file 2 "/x/triton/language/standard.py"
.loc 1 15 14
ld.global.b32 	%r1;
mov.b32 	%r2;
.loc 1 16 14
.loc 2 191 40, function_name $x, inlined_at 1 16 14
add.f32 	%f1;
"""
SASS = format_listing(
    [
        Instruction(0x00, "LDG.E R1 ;", (LOAD,), 4),
        Instruction(0x10, "FADD R2 ;", (LIBRARY, CALL), 8),
        Instruction(0x20, "NOP ;", (), 0),
        Instruction(0x30, "MOV R3 ;", (SourcePlace("/k/a.py", 15),), 0),
    ]
)
CODE = KernelCode("k/12ab", {Stage.TTGIR: TTGIR, Stage.PTX: PTX, Stage.SASS: SASS})


def test_texts_are_found_by_their_names() -> None:
    sources = {
        source_name("k/12ab", Stage.PTX): PTX,
        source_name("a.b/7", Stage.SASS): SASS,
        "/k/a.py": "",
        "kernel:x": "",
    }
    codes = code_of_kernels(sources)
    assert [(key, code.symbol, list(code.texts)) for key, code in codes.items()] == [
        ("k/12ab", "k", [Stage.PTX]),
        ("a.b/7", "a.b", [Stage.SASS]),
    ]


def test_a_line_of_the_source_became_lines_of_each_text() -> None:
    assert CODE.lines_of_source(Stage.TTGIR, "/k/a.py", 15) == [1, 3]
    assert CODE.lines_of_source(Stage.PTX, "/k/a.py", 15) == [3, 4]
    assert CODE.lines_of_source(Stage.SASS, "/k/a.py", 15) == [0, 3]


def test_the_line_that_calls_the_library_became_what_it_inlined() -> None:
    assert CODE.lines_of_source(Stage.TTGIR, "/k/a.py", 16) == [2]
    assert CODE.lines_of_source(Stage.SASS, "/k/a.py", 16) == [1]
    assert CODE.lines_of_source(Stage.SASS, "/k/a.py", 99) == []


def test_instructions_and_ptx_belong_together_one_by_one() -> None:
    assert CODE.lines_of_lines(Stage.SASS, 0, Stage.PTX) == [3]
    assert CODE.lines_of_lines(Stage.PTX, 3, Stage.SASS) == [0]
    assert CODE.lines_of_lines(Stage.PTX, 4, Stage.SASS) == []
    assert CODE.lines_of_lines(Stage.SASS, 2, Stage.PTX) == []


def test_texts_with_columns_are_told_apart_by_them() -> None:
    assert CODE.lines_of_lines(Stage.PTX, 3, Stage.TTGIR) == [1]
    assert CODE.lines_of_lines(Stage.SASS, 1, Stage.TTGIR) == [2]


def test_an_instruction_without_a_column_belongs_to_the_whole_line() -> None:
    assert CODE.lines_of_lines(Stage.SASS, 3, Stage.TTGIR) == [1, 3]
    assert CODE.lines_of_lines(Stage.SASS, 2, Stage.TTGIR) == []


def test_machine_code_is_shown_without_its_places() -> None:
    assert CODE.lines(Stage.SASS) == ["LDG.E R1 ;", "FADD R2 ;", "NOP ;", "MOV R3 ;"]
    assert len(CODE.lines(Stage.PTX)) == len(CODE.places(Stage.PTX)) == 8
    assert CODE.lines(Stage.TTIR) == CODE.places(Stage.TTIR) == []
