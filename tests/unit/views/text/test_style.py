from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.views.text.style import PLAIN, Style, text_width


def test_plain_style_adds_nothing() -> None:
    assert (PLAIN.bold("a"), PLAIN.heat("b", 1.0), PLAIN.dim("c")) == ("a", "b", "c")


def test_heat_grows_with_the_share() -> None:
    style = Style(colour=True)
    assert [style.heat("x", share) for share in (0.6, 0.2, 0.01)] == ["\x1b[31mx\x1b[0m", "\x1b[33mx\x1b[0m", "x"]


@pytest.mark.parametrize(("share", "bar"), [(0, "    "), (0.5, "██  "), (1, "████"), (7, "████"), (0.28, "█▏  ")])
def test_bar_is_as_long_as_the_share(share: float, bar: str) -> None:
    assert PLAIN.bar(share, 4) == bar


def test_everything_is_ascii_without_unicode() -> None:
    style = Style(unicode=False)
    drawn = style.bar(0.4, 8) + style.branch(True) + style.branch(False) + style.stem(False) + style.arrow
    assert (drawn + style.cut("abcdefgh", 5)).isascii()


def test_cut_keeps_head_and_tail() -> None:
    assert PLAIN.cut("vectorized_elementwise", 10) == "vector…ise"


def test_wide_letters_take_two_columns_and_combining_marks_none() -> None:
    assert [text_width(text) for text in ("matmul", "行列積", "é", "e\u0301")] == [6, 6, 1, 1]
    assert PLAIN.cut("行列積カーネル", 9) == "行列…ル"


def test_letters_that_cannot_be_written_take_the_columns_of_their_escapes() -> None:
    style = Style(unicode=False)
    assert (style.width_of("行a"), style.cut("行a", 6), style.cut("行列", 9)) == (7, "\\u...a", "\\u88...17")


@given(st.text(max_size=40), st.integers(0, 50), st.booleans())
def test_cut_text_never_exceeds_its_width(text: str, width: int, unicode: bool) -> None:
    assert text_width(Style(unicode=unicode).cut(text, width)) <= max(width, 0)


def test_long_lines_are_wrapped_at_words_and_the_last_is_cut() -> None:
    style = Style(width=12)
    assert style.wrap("one two", 2) == ["one two"]
    assert style.wrap("  one two three four", 3, "    ") == ["  one two", "    three", "    four"]
    assert style.wrap("one two three four five six", 2) == ["one two", "three f… six"]
    assert Style(width=14).wrap("start 1 s | steady 2 s", 2, "  ", " | ") == ["start 1 s", "  | steady 2 s"]
    assert Style(width=14).wrap("start 1 s | steady 2 s (5 steps)", 2, "  ", " | ") == [
        "start 1 s",
        "  | steady 2 s",
        "    (5 steps)",
    ]
    assert PLAIN.wrap("as long as it is", 2) == ["as long as it is"]


def test_a_word_that_is_longer_than_a_line_is_broken_and_stays_whole() -> None:
    lines = Style(width=20).wrap("call torch.backends.cuda.enable_cudnn_sdp(False) once", 9, "  ")
    assert lines == ["call", "  torch.backends.cud", "  a.enable_cudnn_sdp", "  (False) once"]


def test_paragraphs_take_the_lines_that_they_need() -> None:
    assert Style(width=8).paragraphs(["one two three", "four"]) == ["one two", "  three", "four"]
