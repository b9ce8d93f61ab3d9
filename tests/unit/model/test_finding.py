from __future__ import annotations

import pytest

from bragg.model.finding import percent_text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0 %"),
        (0.0002, "<0.1 %"),
        (0.0474, "4.7 %"),
        (0.0996, "10 %"),
        (0.4738, "47 %"),
        (0.986, "99 %"),
        (0.992, "99.2 %"),
        (0.9998, "100 %"),
        (1.0, "100 %"),
    ],
)
def test_shares_in_sentences_have_tenths_only_at_both_ends(share: float, text: str) -> None:
    assert percent_text(share) == text
