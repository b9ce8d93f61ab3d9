from __future__ import annotations

from bragg.views.terminal.labels import Labels
from tests.support.profiles import profile_from_text


def labels(line: str, *, full: bool = False) -> str:
    frames = profile_from_text(f"root\n  {line}").tree.frames
    return Labels(frames, full).text(1)


def test_code_is_named_with_file_and_line() -> None:
    assert labels("/home/me/train.py:12@step") == "step train.py:12"


def test_file_with_a_common_name_keeps_its_directory() -> None:
    assert labels("/home/me/net/__init__.py:3@build") == "build net/__init__.py:3"


def test_nested_function_is_named_without_those_around_it() -> None:
    assert labels("a.py:3@matvec.<locals>.<listcomp>.<genexpr>") == "<listcomp>.<genexpr> a.py:3"
    assert labels("a.py:3@outer.<locals>.inner", full=True) == "outer.<locals>.inner a.py:3"


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
