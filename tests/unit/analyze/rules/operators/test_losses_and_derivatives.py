"""Rows that a loss ignores, and derivatives that are computed whole for a product, by the text of the program."""

from __future__ import annotations

import pytest

from tests.support.told_by_text import found, ran

MODEL = """class Model:
  def forward(self, ids):
    h = self.body(ids)
    return self.head(h)
def batch(ids, mask, n, pad):
  labels = ids.clone()
  {}
  return ids, labels
def main():
  criterion, of_last = nn.CrossEntropyLoss(), nn.CrossEntropyLoss(ignore_index=-1)
  keep = labels != -100
  {}
  {}
NONE = -100
"""


@pytest.mark.parametrize(
    ("hides", "calls", "loss", "n_found"),
    [
        ("labels[~mask] = -100", "y = model(ids)", "loss = F.cross_entropy(y.view(-1, V), labels.view(-1))", 1),
        ("labels[:n] = -100", "y = model(ids).float()", "loss = criterion(y.flatten(0, 1), labels.flatten())", 1),
        ("labels = torch.where(mask, ids, -100)", "y = model(ids)", "loss = criterion(y.transpose(1, 2), labels)", 1),
        ("labels = ids.masked_fill(~mask, -100)", "y = model(ids)", "loss = criterion(y[:, :-1].mT, labels[:, 1:])", 1),
        ("labels = torch.where(mask, ids, NONE)", "y = model(ids)", "loss = criterion(y, labels)", 1),
        ("labels[~mask] = NONE", "y = model(ids)", "loss = F.cross_entropy(y, labels, ignore_index=NONE)", 1),
        ("labels[~mask] = -1", "y = model(ids)", "loss = F.cross_entropy(y, labels, ignore_index=-1)", 1),
        ("labels[~mask] = -1", "y = model(ids)", "loss = of_last(y, labels)", 1),
        ("labels[~mask] = -100", "y = model(ids)", "loss = of_last(y, labels)", 0),
        ("labels[ids == pad] = -100", "y = model(ids)", "loss = criterion(y, labels)", 0),
        ("labels[:, -1] = -100", "y = model(ids)", "loss = criterion(y, labels)", 0),
        ("labels[~mask] = 0", "y = model(ids)", "loss = criterion(y, labels)", 0),
        ("labels[~mask] = -100", "y = model(ids)", "loss = F.cross_entropy(y, labels, ignore_index=0)", 0),
        ("labels[~mask] = -100", "y = model(ids)[keep]", "loss = criterion(y, labels[keep])", 0),
        ("labels[~mask] = -100", "y = model(ids)", "loss = criterion(y, labels) + y.mean()", 0),  # all rows are read
    ],
)
def test_products_whose_loss_ignores_rows_are_found(hides: str, calls: str, loss: str, n_found: int) -> None:
    text = MODEL.format(hides, calls, loss)
    profile = ran(text, "12@main > 3@forward: tanh", "12@main > 4@forward: linear", "13@main: cross_entropy_loss")
    findings = found("ignored-targets", profile)
    assert [(each.line, [place.line for place in each.places][:1]) for each in findings] == [(4, [13])] * n_found
    for each in findings:
        assert each.evidence[1].value == pytest.approx(100 / 170)


SHARPNESS = """def times(f, x, v):
  {}
  {}
  return y
probe = hessian(f)
"""


@pytest.mark.parametrize(
    ("made", "used", "n_found"),
    [
        ("h = torch.autograd.functional.hessian(f, x)", "y = h @ v", 1),
        ("h = torch.func.hessian(f)(x)", "y = torch.mv(h, v)", 1),
        ("h = probe(x)", "y = v @ (h @ v)", 1),
        ("j = jacrev(f)(x)", "y = j.T @ v", 1),
        ("h = vmap(hessian(f))(x)", "y = torch.bmm(h, v)", 1),
        ("y = hessian(f)(x) @ v", "", 1),
        ("j = jacrev(f)(x)", "y = j.T @ j", 0),
        ("h = torch.func.hessian(f)(x)", "y = torch.linalg.solve(h, v)", 0),
        ("h = torch.func.hessian(f)(x)", "y = h @ v + h.sum()", 0),
        ("h = torch.func.hessian(f)(x)", "y = h.diagonal()", 0),  # needs each of its rows
        ("h = f(x)", "y = h @ v", 0),
    ],
)
def test_derivatives_of_which_products_are_used_are_found(made: str, used: str, n_found: int) -> None:
    findings = found("whole-derivative", ran(SHARPNESS.format(made, used), "2@times > 9@f: mul", "3@times: mv"))
    assert [each.line for each in findings] == [2] * n_found


def test_a_derivative_that_a_function_returns_is_followed_to_its_product() -> None:
    text = "def h(x):\n  return torch.func.hessian(f)(x)\ndef main(x, v):\n  m = h(x)\n  return m @ v\n"
    assert [each.line for each in found("whole-derivative", ran(text, "4@main > 2@h > 9@f: mul"))] == [2]
