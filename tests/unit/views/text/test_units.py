from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.views.text.units import bytes_text, count_text, scale_for, share_text, time_text


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.50 us"),
        (12_345_678, "12.3 ms"),
        (987_654_321, "988 ms"),
        (3e12, "3,000 s"),
        (-1_500, "-1.50 us"),
    ],
)
def test_time_has_the_largest_unit_that_fits(time_ns: float, text: str) -> None:
    assert time_text(time_ns) == text


def test_bytes_count_in_thousands() -> None:
    assert (bytes_text(0), bytes_text(1_234_567)) == ("0 B", "1.23 MB")


def test_count_is_grouped_and_agrees_with_its_noun() -> None:
    assert (count_text(1, "kernel"), count_text(12_345, "kernel")) == ("1 kernel", "12,345 kernels")


@pytest.mark.parametrize(("share", "text"), [(1, "100.0 %"), (0.1234, "12.3 %"), (0.0001, "<0.1 %"), (0, "0.0 %")])
def test_share_is_a_percentage(share: float, text: str) -> None:
    assert share_text(share) == text


def test_column_has_one_unit_and_small_values_are_not_shown_as_zero() -> None:
    scale = scale_for("ns", 5e9)
    assert (scale.unit, scale.text(1.25e9), scale.text(1e6), scale.text(0)) == ("s", "1.25", "<0.01", "0.00")
    assert scale.text(-1e6) == "-<0.01"


def test_missing_value_is_blank() -> None:
    assert scale_for("ns", 1e6).text(math.nan) == ""


def test_counts_have_no_unit_and_no_decimals() -> None:
    scale = scale_for("1", 2e6)
    assert (scale.unit, scale.text(1_234_567)) == ("", "1,234,567")


def test_unknown_unit_is_kept() -> None:
    assert scale_for("FLOP/s", 3e12).unit == "FLOP/s"


@given(st.floats(min_value=0, max_value=1e18))
def test_every_time_has_a_number_and_a_unit(time_ns: float) -> None:
    number, unit = time_text(time_ns).split(" ")
    assert float(number.replace(",", "")) >= 0
    assert unit in {"ns", "us", "ms", "s"}
