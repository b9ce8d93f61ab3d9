from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.grouping.hlo_program import NOWHERE, PROGRAM_KEY, HloOperation, HloPlace, HloPrograms, HloState, program_text

FIRST = {"fusion.1": HloOperation("jit(f)/mul", HloPlace("f.py", 3)), "copy.2": HloOperation("", NOWHERE)}
SECOND = {
    "fusion.1": HloOperation("jit(f)/add", HloPlace("f.py", 4)),
    "fusion.2": HloOperation("", HloPlace("g.py", 5)),
}


def programs(*texts: str) -> HloPrograms:
    return HloPrograms({"jit_f": {f"{PROGRAM_KEY} {number}": text for number, text in enumerate(texts)}})


def test_operations_are_found_by_module_and_name() -> None:
    known = programs(program_text(FIRST))
    assert known.find("jit_f", "fusion.1") == FIRST["fusion.1"]
    assert known.find("jit_f", "copy.2") == HloOperation("", NOWHERE)
    assert known.find("jit_g", "fusion.1", "jit(g)/neg") == HloOperation("jit(g)/neg", NOWHERE)


def test_programs_of_one_name_are_told_apart_by_what_the_range_says() -> None:
    known = programs(program_text(FIRST), program_text(SECOND))
    assert known.find("jit_f", "fusion.1", "jit(f)/add") == HloOperation("jit(f)/add", HloPlace("f.py", 4))
    assert known.find("jit_f", "fusion.2") == HloOperation("", HloPlace("g.py", 5))


def test_fused_operations_have_the_name_of_the_whole() -> None:
    known = programs(program_text(FIRST))
    assert known.find("jit_f", "fusion.1", "jit(f)") == FIRST["fusion.1"]
    assert known.find("jit_f", "fusion.1", "jit(f)/m") == HloOperation("jit(f)/m", NOWHERE)


def test_what_programs_disagree_on_is_not_said() -> None:
    assert programs(program_text(FIRST), program_text(SECOND)).find("jit_f", "fusion.1") == HloOperation("", NOWHERE)


def test_what_an_operation_does_with_other_devices_is_kept() -> None:
    told = HloOperation("jit(f)/psum", HloPlace("f.py", 3), "collective all-reduce[8 f32 in groups of 2]")
    known = programs(program_text({"psum.1": told, **FIRST}))
    assert known.find("jit_f", "psum.1") == told
    assert known.find("jit_f", "fusion.1") == FIRST["fusion.1"]


def test_what_an_operation_need_not_do_is_kept_where_programs_agree() -> None:
    state = HloState("[copied argument] x", HloPlace("g.py", 5))
    told = {"copy.2": HloOperation("", NOWHERE, "", state)}
    assert programs(program_text(told)).find("jit_f", "copy.2") == told["copy.2"]
    assert programs(program_text(told), program_text(FIRST)).find("jit_f", "copy.2") == HloOperation("", NOWHERE)


def test_what_follows_from_some_arguments_is_judged_where_these_are_the_same_at_each_call() -> None:
    state = HloState("[from the same arguments] | a | b", HloPlace("g.py", 5))
    text = program_text({"dot.2": HloOperation("", NOWHERE, "", state)})

    def judged(*same: str) -> HloState:
        calls = {f"same arguments {number}": value for number, value in enumerate(same)}
        known = HloPrograms({"jit_f": {f"{PROGRAM_KEY} 1": text}, "jit(f)": calls, "jit(g)": {"same arguments 7": ""}})
        return known.find("jit_f", "dot.2").state

    assert judged(" | a | b | c") == state
    assert judged(" | a | b | c", " | a | b") == state
    assert judged(" | a | b", " | a") == judged(" | a") == judged("") == judged() == HloState("", NOWHERE)


@pytest.mark.parametrize(
    ("other", "agreed"),
    [
        ("collective all-reduce[16 f32, group devices 0-3 of 4]", "collective all-reduce[group devices 0-3 of 4]"),
        ("collective all-reduce[8 f32, group devices 0,1 of 2]", ""),
        ("collective all-gather[8 f32, group devices 0-3 of 4]", ""),
        ("", ""),
    ],
)
def test_programs_of_several_shapes_agree_on_the_group(other: str, agreed: str) -> None:
    one = "collective all-reduce[8 f32, group devices 0-3 of 4]"
    texts = [program_text({"psum.1": HloOperation("jit(f)/psum", NOWHERE, told)}) for told in (one, other)]
    assert programs(*texts).find("jit_f", "psum.1").collective == agreed


@given(st.integers(0, 200), st.characters())
def test_damaged_programs_are_left_out(position: int, put: str) -> None:
    text = program_text(FIRST)
    known = programs(text[:position] + put + text[position + 1 :])
    assert known.find("jit_f", "fusion.9", "jit(f)/mul") in [
        HloOperation("jit(f)/mul", NOWHERE),
        HloOperation("jit(f)/mul", HloPlace("f.py", 3)),
    ]
