from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.annotated_code import AnnotatedCode
from bragg.analyze.kernel_choice import choose_kernel
from bragg.analyze.source_lines import annotate
from bragg.code.sass.listing import Instruction
from bragg.code.source_map import Stage, source_name
from bragg.errors import NothingRecorded
from bragg.model import Profile
from tests.support.sampled_kernels import CALL, FILE, INNER, KEY, LIBRARY, LOAD, sampled_profile


def annotated(profile: Profile, stage: Stage | None = None) -> AnnotatedCode:
    return annotate(profile, choose_kernel(profile, None), stage)


def counts(code: AnnotatedCode) -> list[dict[int, float]]:
    """Samples by line number in each section, without lines that have none."""
    return [
        {line.number: line.samples.count for line in section.lines if line.samples.count} for section in code.sections
    ]


def test_lines_of_the_kernel_have_what_they_inline_and_add_up() -> None:
    code = annotated(sampled_profile())
    assert [section.title for section in code.sections] == [f"softmax  {FILE}", f"scale  {FILE}"]
    assert counts(code) == [{8: 60, 9: 30, 10: 10}, {3: 30}]
    assert (code.total.count, code.total.stalled, code.unplaced.count) == (100, 75, 0)


def test_a_section_is_a_whole_function() -> None:
    softmax, scale = annotated(sampled_profile()).sections
    assert [line.number for line in softmax.lines] == [6, 7, 8, 9, 10]
    assert [line.text for line in scale.lines][:2] == ["@triton.jit", "def scale(values):"]


def test_the_main_reason_is_that_of_the_warps_that_could_not_issue() -> None:
    softmax, _ = annotated(sampled_profile()).sections
    reasons = {line.number: line.samples.main_reason for line in softmax.lines}
    assert reasons[8] is not None
    assert reasons[9] is not None
    assert (reasons[8].name, reasons[9].name, reasons[10]) == ("long_scoreboard", "wait", None)


def test_without_the_code_the_nodes_of_the_profile_say_where_samples_belong() -> None:
    code = annotated(sampled_profile(code=False))
    (section,) = code.sections
    assert section.title == FILE
    assert {line.number: line.samples.count for line in section.lines if line.samples.count} == {
        3: 30,
        8: 60,
        9: 30,
        10: 10,
    }


def test_machine_code_has_its_samples_at_offsets() -> None:
    code = annotated(sampled_profile(), Stage.SASS)
    assert counts(code) == [{0x00: 60, 0x10: 30, 0x20: 10}]
    assert code.sections[0].lines[1].chain[1:] == (INNER, CALL)


def test_an_instruction_that_the_code_does_not_have_is_counted_as_unplaced() -> None:
    code = annotated(sampled_profile(instructions=[Instruction(0, "LDG ;", (LOAD,), 0)]), Stage.SASS)
    assert (counts(code), code.unplaced.count) == ([{0: 60}], 40)


def test_operations_of_one_place_all_show_its_samples() -> None:
    profile = sampled_profile()
    profile.sources[source_name(KEY, Stage.TTGIR)] = (
        f'%0 = tt.load loc("{FILE}":8:5)\n%1 = ttg.wait loc("{FILE}":8:5)\ntt.store loc("{FILE}":10:5)\n'
    )
    code = annotated(profile, Stage.TTGIR)
    assert counts(code) == [{1: 60, 2: 60, 3: 10}]
    assert code.unplaced.count == 30
    assert code.sections[0].lines[0].became == {Stage.SASS: [0]}


def test_ptx_has_the_samples_of_the_instructions_that_it_became() -> None:
    profile = sampled_profile()
    profile.sources[source_name(KEY, Stage.PTX)] = "\nld;\n\nmax;\n\nst;\n"
    assert counts(annotated(profile, Stage.PTX)) == [{2: 60, 4: 30, 6: 10}]


def test_without_samples_lines_say_what_they_became() -> None:
    code = annotated(sampled_profile(samples=False))
    assert code.total.count == 0
    softmax, scale = code.sections
    assert {line.number: line.became[Stage.SASS] for line in softmax.lines if line.became[Stage.SASS]} == {
        8: [0x00],
        9: [0x10],
        10: [0x20],
    }
    assert [line.number for line in scale.lines if line.became[Stage.SASS]] == [3]


def test_a_text_that_the_profile_does_not_have_is_told_with_the_reason() -> None:
    profile = sampled_profile()
    profile.meta["kernel_code"] = {KEY: "its files were removed"}
    with pytest.raises(NothingRecorded, match="no TTIR of softmax") as caught:
        annotated(profile, Stage.TTIR)
    assert caught.value.hint == "its files were removed"
    with pytest.raises(NothingRecorded, match="no source of other") as caught:
        annotate(profile, choose_kernel(profile, "other"), None)
    assert caught.value.hint.startswith("Those with code: softmax<")


def test_lines_have_the_cycles_that_clocks_told_of_them() -> None:
    profile = sampled_profile(samples=False)
    places = [
        {"file": LIBRARY, "line": 191, "function": "max"},
        {"file": FILE, "line": 3, "function": "scale"},
        {"file": FILE, "line": 9, "function": "softmax"},
    ]
    told = {
        "kernel": "softmax<BLOCK=1024 w4 s3>",
        "covered_cycles": 1000,
        "segments": [
            {"does": "wait for other warps", "place": places, "cycles": [200, 300]},
            {"does": "shared memory", "place": places, "cycles": [50, 50]},
            {"does": "begin loads from global memory", "place": [{"file": FILE, "line": 8}], "cycles": [40]},
        ],
    }
    code = annotated(replace(profile, meta={**profile.meta, "inside_kernels": [told]}))
    assert code.clock_cycles == 1000
    cycles = {line.number: line.clocks.cycles for section in code.sections for line in section.lines}
    both = {"wait for other warps": 500, "shared memory": 100}
    assert cycles[8] == {"begin loads from global memory": 40}
    assert (cycles[9], cycles[3], cycles[10]) == (both, both, {})
