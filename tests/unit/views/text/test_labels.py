from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.views.text.labels import CodeFormat, Labels
from tests.support.profiles import profile_from_text


def labels(line: str, *, full: bool = False) -> str:
    frames = profile_from_text(f"root\n  {line}").tree.frames
    return Labels(frames, full).text(1)


def test_code_is_named_with_file_and_line() -> None:
    assert labels("/home/me/train.py:12@step") == "step train.py:12"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (CodeFormat.FULL, "/home/me/net/__init__.py:12@step"),
        (CodeFormat.FILE_FUNCTION_LINE, "__init__.py:12@step"),
        (CodeFormat.FUNCTION_LINE, "12@step"),
        (CodeFormat.FILE_FUNCTION, "__init__.py@step"),
    ],
)
def test_code_can_be_one_word(code: CodeFormat, text: str) -> None:
    frames = profile_from_text("root\n  /home/me/net/__init__.py:12@step\n  a/b:c").tree.frames
    assert [Labels(frames, code=code).text(frame) for frame in (1, 2)] == [text, "a/b:c"]


def test_specialization_and_helper_of_a_kernel_are_no_cpp_names() -> None:
    assert labels("matmul<BM=128,w8> 1us") == "matmul<BM=128,w8>"
    assert labels("<metric> 1us") == "<metric>"


def test_file_with_a_common_name_keeps_its_directory() -> None:
    assert labels("/home/me/net/__init__.py:3@build") == "build net/__init__.py:3"


def test_nested_function_is_named_without_those_around_it() -> None:
    assert labels("a.py:3@matvec.<locals>.<listcomp>.<genexpr>") == "<listcomp>.<genexpr> a.py:3"
    assert labels("a.py:3@outer.<locals>.inner", full=True) == "outer.<locals>.inner a.py:3"


def test_line_of_no_known_function_is_named_by_its_place() -> None:
    frames = profile_from_text("root\n  /x/standard.py:191@max #line").tree.frames
    frames = replace(frames, name=["", ""])
    for full, place in ((False, "standard.py:191"), (True, "/x/standard.py:191")):
        named = Labels(frames, full)
        assert (named.name(1), named.place(1), named.text(1)) == (place, "", place)


def test_what_ran_in_the_root_itself_is_no_total() -> None:
    named = Labels(profile_from_text("root\n  load").tree.frames)
    assert [named.text(0), named.own_text(0), named.in_sentence(0)] == ["total", *["code outside of any scope"] * 2]
    assert [named.own_text(1), named.in_sentence(1)] == ["load", "'load'"]


def test_full_label_has_the_whole_path() -> None:
    assert labels("/home/me/train.py:12@step", full=True) == "step /home/me/train.py:12"


def test_operator_with_colons_is_not_taken_for_a_symbol() -> None:
    assert labels("aten::linear #operator host=1us") == "aten::linear"


def test_kernel_is_short_unless_full_names_are_wanted() -> None:
    kernel = "a::vectorized_elementwise_kernel<4,FillFunctor<int>> 1us"
    assert labels(kernel) == "elementwise[Fill<int>]"
    assert labels(kernel, full=True) == "a::vectorized_elementwise_kernel<4,FillFunctor<int>>"


def test_name_cannot_move_the_cursor() -> None:
    frames = profile_from_text("root\n  k 1us").tree.frames
    broken = frames.replace(name=["root", "a\x1b[2J\n\udcff"])
    assert Labels(broken).text(1) == r"a\x1b[2J\n\udcff"


def test_root_is_the_total() -> None:
    assert Labels(profile_from_text("root").tree.frames).text(0) == "total"
