"""A kernel of two profiles: lines that belong together, and the names of its instructions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.annotated_code import CodeSection, Samples, SourceLine
from bragg.analyze.comparing.kernel_change import kernel_change, paired_sections
from bragg.analyze.kernel_choice import choose_kernel
from bragg.errors import UsageError
from bragg.model import Profile
from tests.support.sampled_kernels import CODE, FILE, TEXT, sampled_profile

CHANGED = TEXT.replace("    values = scale(values)", "    values = 2 * values")
LONGER = [
    CODE[0]._replace(text="@!P0 LDG.E.128 R4, [R2.64+0x10] ;"),
    CODE[1]._replace(text="FMUL R1, R1, 2 ;", chain=CODE[1].chain[-1:]),
    CODE[2],
    CODE[2]._replace(offset_bytes=0x30),
]


def section(name: str, file: str, *texts: str) -> CodeSection:
    """A function with these lines, from 1."""
    lines = [SourceLine(number, text, Samples(), (), {}) for number, text in enumerate(texts, 1)]
    return CodeSection(f"{name}  {file}", lines, file)


def numbers(before: CodeSection, after: CodeSection) -> list[tuple[int | None, int | None]]:
    """Lines of both by their numbers."""
    (pairs,) = paired_sections([before], [after])
    return [(pair.before and pair.before.number, pair.after and pair.after.number) for pair in pairs.lines]


def test_lines_with_the_same_text_stand_together_whatever_moved_and_in_whichever_file() -> None:
    before = section("k", "a.py", "def k():", "    x = 1", "    store(x)")
    after = section("k", "b.py", "def k():", "    if y:", "        x = 1", "    store(2 * x)")
    assert numbers(before, after) == [(1, 1), (None, 2), (2, 3), (3, None), (None, 4)]


def test_functions_of_one_side_have_its_lines_alone() -> None:
    kernel, helper, other = (section(name, "a.py", f"def {name}():") for name in ("k", "helper", "other"))
    found = paired_sections([kernel, helper], [other, kernel])
    sides = [(each.title.split()[0], bool(each.lines[0].before), bool(each.lines[0].after)) for each in found]
    assert sides == [("other", False, True), ("k", True, True), ("helper", True, False)]


def later(**options: bool) -> Profile:
    profile = sampled_profile(instructions=LONGER, **options)
    profile.sources[FILE] = CHANGED
    return profile


def test_instructions_are_counted_by_name_without_registers_predicates_and_addresses() -> None:
    change = kernel_change(sampled_profile(), later(), choose_kernel(later(), "softmax"))
    assert change.instructions == (3, 4)
    assert change.opcodes == {
        "FMNMX": (1, 0),
        "FMUL": (0, 1),
        "LDG.E": (1, 0),
        "LDG.E.128": (0, 1),
        "STG.E": (1, 2),
    }


def test_a_specialization_that_the_earlier_profile_lacks_is_compared_with_another_one() -> None:
    before = sampled_profile()
    frames = before.tree.frames
    names = [name.replace("BLOCK=1024", "BLOCK=512") for name in frames.name]
    old = replace(before, tree=replace(before.tree, frames=frames.replace(name=names)))
    old.meta["attributes"] = {"softmax<BLOCK=512 w4 s3>": before.meta["attributes"]["softmax<BLOCK=1024 w4 s3>"]}
    after = sampled_profile()
    change = kernel_change(old, after, choose_kernel(after, "softmax"))
    assert [code.kernel for code in change.codes] == ["softmax<BLOCK=512 w4 s3>", "softmax<BLOCK=1024 w4 s3>"]
    assert change.opcodes == {}


def test_a_kernel_that_the_earlier_profile_lacks_is_an_error() -> None:
    after = sampled_profile()
    names = [name.replace("softmax", "gelu") for name in after.tree.frames.name]
    old = replace(after, tree=replace(after.tree, frames=after.tree.frames.replace(name=names)))
    with pytest.raises(UsageError, match="no kernel is called 'softmax'"):
        kernel_change(old, after, choose_kernel(after, "softmax"))
