"""Keys and values that are copied for each query head of a group."""

from __future__ import annotations

import pytest

from tests.support.told_by_text import found, ran

TEXT = """def attend(q, k, v, n):
  k = k.{}
  v = v.{}
  return F.scaled_dot_product_attention(q, k, v)
def other(x, n):
  return x.repeat_interleave(n, dim=1)
"""


def test_heads_that_are_copied_for_attention_are_found() -> None:
    repeats = "repeat_interleave(n, dim=1)"
    calls = ("2@attend: repeat_interleave", "3@attend: repeat_interleave", "4@attend: scaled_dot_product_attention")
    (finding,) = found("late-repeat", ran(TEXT.format(repeats, repeats), *calls))
    assert [finding.line, *(each.line for each in finding.places)] == [2, 3]
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.42, abs=0.02)  # 100 us of a step


@pytest.mark.parametrize("call", ["2@attend: transpose", "6@other: repeat_interleave"])
def test_what_attention_does_not_read_copied_is_fine(call: str) -> None:
    profile = ran(TEXT.format("transpose(1, 2)", "transpose(1, 2)"), call, "4@attend: scaled_dot_product_attention")
    assert found("late-repeat", profile) == []
