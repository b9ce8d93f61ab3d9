"""Parts of a line that stay the same in each turn of a loop, beside others that change."""

from __future__ import annotations

import pytest

from tests.support.told_by_text import found, ran

SINKHORN = """def f(cost, a, v, n):
  for _ in range(n):
    {}
  return v
def g(data, n):
  for cost, a, v in data:
    print(f(cost, a, v, n))
"""


@pytest.mark.parametrize(
    ("text", "operators", "n_found"),
    [
        ("v = a / (torch.exp(-cost / 9) @ v)", "exp", 1),
        ("v = a / (cost.float() @ v)", "to", 1),
        ("v = a / (-cost @ v)", "neg", 1),
        ("v = v + torch.cdist(cost, a) / v", "cdist", 1),
        ("v = a / (torch.exp(-cost / 9) @ v)", "matmul", 0),
        ("v = a / (torch.exp(-cost / v) @ v)", "exp", 0),
        ("v = torch.exp(cost) @ torch.exp(v)", "exp", 0),  # its time is that of both
        ("v = torch.exp(torch.randn_like(cost)) @ v", "exp", 0),
        ("v = a / v", "exp", 0),
    ],
)
def test_an_operator_of_what_no_turn_changes_is_found_beside_others(text: str, operators: str, n_found: int) -> None:
    profile = ran(SINKHORN.format(text), f"7@g > 3@f: {operators}, div", "7@g > 3@f: matmul")
    told = found("loop-invariant", profile)
    shares = [each.value for finding in told for each in finding.evidence if each.name == "share of the GPU time"]
    assert [each.line for each in told] == [3] * n_found
    assert shares == [pytest.approx(50 / 170)] * n_found


def test_weights_that_are_turned_for_each_call_stay_the_same() -> None:
    text = (
        "class Net:\n  def forward(self, x):\n    return x @ self.weight.t().contiguous()\n"
        "net = Net()\nwhile n < 9:\n  x = net(x)\n"
    )
    assert [each.line for each in found("loop-invariant", ran(text, "6@<module> > 3@forward: contiguous, matmul"))] == [
        3
    ]
    trained = text + "  loss.backward()\n"
    assert found("loop-invariant", ran(trained, "6@<module> > 3@forward: contiguous, matmul")) == []
