from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import counted, lasting, three_digits
from tests.support.profiles import profile_from_text
from tests.support.stepped import stepped


@pytest.mark.parametrize(
    ("value", "text"), [(0.99234, "0.992"), (16.44, "16.4"), (999.4, "999"), (999.6, "1,000"), (2518.2, "2,518")]
)
def test_figures_in_sentences_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert three_digits(value) == text


def steps(n: float) -> tuple[Evidence, float]:
    """A program, and a count of so many in each of its steps."""
    evidence = Evidence(stepped("host 0-5 a#scope ->1\ngpu 7-90 a#scope > k#kernel <-1", 100))
    return evidence, n * evidence.n_steps


@pytest.mark.parametrize(
    ("each", "text"),
    [
        (2.03, "2 copies a step"),
        (0.992, "1 copy a step"),
        (58.8, "59 copies a step"),
        (2988, "2,988 copies a step"),
        (4.4, "4.4 copies a step"),
        (0.25, "0.25 copies a step"),
    ],
)
def test_counts_in_sentences_are_whole_where_they_nearly_are(each: float, text: str) -> None:
    assert counted(*steps(each), "copy", "copies") == text


def test_counts_without_steps_are_those_of_all() -> None:
    assert counted(Evidence(profile_from_text("root\n  a 5us")), 15_999.6) == "16,000 in all"


@pytest.mark.parametrize(("time_ns", "text"), [(1_716_000, "1.72 ms"), (115_000, "0.115 ms"), (28_790, "28.8 us")])
def test_times_in_sentences(time_ns: int, text: str) -> None:
    assert lasting(time_ns) == text
