from __future__ import annotations

import pytest

from bragg.analyze.causes.host_finding import three_digits


@pytest.mark.parametrize(
    ("value", "text"), [(0.99234, "0.992"), (16.44, "16.4"), (999.4, "999"), (999.6, "1,000"), (2518.2, "2,518")]
)
def test_figures_in_sentences_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert three_digits(value) == text
