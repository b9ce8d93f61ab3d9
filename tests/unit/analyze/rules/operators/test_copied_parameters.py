"""Parameters that are copied in each step."""

from __future__ import annotations

import pytest

from tests.support.told_by_text import found, ran


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("self.best = copy.deepcopy(net)", 1),
        ("self.best = {k: v.clone() for k, v in net.state_dict().items()}", 1),
        ("self.best = {k: v.detach().cpu() for k, v in net.state_dict().items()}", 1),
        ("self.best = net.state_dict()", 0),
        ("self.best = x.clone()", 0),
    ],
)
def test_parameters_that_each_step_copies(text: str, n_found: int) -> None:
    told = found("copied-parameters", ran(f"def f(self, net, x):\n  {text}\n", *["2@f: clone"] * 3))
    assert [each.line for each in told] == [2] * n_found
