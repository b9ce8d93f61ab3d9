from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bragg.code.ptx_text import places_of_ptx
from bragg.code.source_place import SourcePlace

NEW = """\
.version 9.4
.visible .entry k(
	.param .u64 k_param_0
)
{
	.reg .b32 	%r<9>;
	.loc	1 12 0                          // a.py:12:0
$L__func_begin0:
	ld.param.b64 	%rd1, [k_param_0];
	.loc	1 16 14                         // a.py:16:14
	mov.u32 	%r1, %tid.x;
	.loc	2 216 16, function_name $L__info_string0, inlined_at 1 16 14 // standard.py:216:16
	add.s32 	%r2, %r1, 1;
	.loc	2 191 40, function_name $L__info_string0, inlined_at 2 216 16 // standard.py:191:40
	max.f32 	%f1, %f2, %f3;
	.loc	1 22 12                         // a.py:22:12
	// begin inline asm
	.loc	1 22 12                         // a.py:22:12
	wgmma.mma_async first;
	.loc	1 23 12                         // a.py:23:12
	wgmma.wait_group.sync.aligned 1;
	// end inline asm
	@%p1 bra 	$L__BB0_2;
	ret;
}
.func apart()
{
	ret;
}
	.file	1 "/k/a.py"
	.file	2 "/lib" "standard.py"
"""
# LLVM before 20 tells the calls in comments alone.
OLD = """\
	.loc	2 191 40                        // standard.py:191:40 @[ standard.py:216:16 @[ a.py:16:14 ] ]
	max.f32 	%f1, %f2, %f3;
	.loc	1 17 5                          // a.py:17:5
	ret;
	.file	1 "/k/a.py"
	.file	2 "/lib/standard.py"
"""
CHAIN = (
    SourcePlace("/lib/standard.py", 191, 40),
    SourcePlace("/lib/standard.py", 216, 16),
    SourcePlace("/k/a.py", 16, 14),
)


def place_of(text: str, ptx: str = NEW) -> tuple[SourcePlace, ...]:
    """The places of the only line that contains a text."""
    (number,) = [number for number, line in enumerate(ptx.splitlines()) if text in line]
    return places_of_ptx(ptx)[number]


def test_an_instruction_has_the_place_of_the_line_before() -> None:
    assert place_of("ld.param") == (SourcePlace("/k/a.py", 12, 0),)
    assert place_of("mov.u32") == (SourcePlace("/k/a.py", 16, 14),)


def test_inlined_code_leads_to_all_its_callers() -> None:
    assert place_of("add.s32") == CHAIN[1:]
    assert place_of("max.f32") == CHAIN


def test_callers_in_comments_are_the_same() -> None:
    assert place_of("max.f32", OLD) == CHAIN
    assert place_of("ret", OLD) == (SourcePlace("/k/a.py", 17, 5),)


def test_lines_that_are_counted_within_inline_assembly_do_not_count() -> None:
    assert place_of("wgmma.wait_group") == place_of("first;") == place_of("@%p1") == (SourcePlace("/k/a.py", 22, 12),)


def test_a_function_does_not_inherit_the_place_of_the_one_before() -> None:
    lines = NEW.splitlines()
    assert places_of_ptx(NEW)[lines.index(".func apart()") + 2] == ()


def test_directives_and_labels_have_no_place() -> None:
    for text in (".reg", ".version", ".param .u64", "$L__func_begin0", "// begin"):
        assert place_of(text) == ()


@given(st.data())
def test_damaged_text_has_a_chain_for_each_line(data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(NEW)))
    end = data.draw(st.integers(begin, len(NEW)))
    junk = data.draw(st.text('.locfile 129@[]":/\t\n', max_size=12))
    text = NEW[:begin] + junk + NEW[end:]
    assert len(places_of_ptx(text)) == len(text.splitlines())
