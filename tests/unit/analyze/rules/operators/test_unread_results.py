"""Results that nothing reads, by the text of the program."""

from __future__ import annotations

import pytest

from tests.support.told_by_text import found, ran

HEADS = """def forward(x):
  h = body(x)
  tokens = words(h)
  label = classes(h)
  return label, tokens
def predict(x):
  {}
  return label
"""


@pytest.mark.parametrize(
    ("taken", "n_found"),
    [("label, _ = forward(x)", 1), ("label, tokens = forward(x); use(tokens)", 0), ("label = forward(x)", 0)],
)
def test_a_result_that_a_function_returns_for_nobody(taken: str, n_found: int) -> None:
    profile = ran(HEADS.format(taken), "7@predict > 3@forward: linear", "7@predict > 4@forward: linear")
    told = found("unread-result", profile)
    assert [each.line for each in told] == [3] * n_found


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("def f(x):\n  y = net(x)\n  return x", 1),
        ("def f(x):\n  y = net(x)\n  return y", 0),
        ("def f(x):\n  y = net(x)", 0),  # what is measured
        ("def f(x):\n  y = train_step(x)\n  return x", 0),
        ("def f(x):\n  y = x.add_(1)\n  return x", 0),
        ("def f(x):\n  y = keep(x)\n  return x\ndef keep(x):\n  seen.append(x)", 0),
        ("def f(x):\n  y = net(x)\n  return x\nnet.register_forward_hook(keep)", 0),
    ],
)
def test_a_result_that_nothing_reads(text: str, n_found: int) -> None:
    assert [each.line for each in found("unread-result", ran(text, "2@f: linear"))] == [2] * n_found


@pytest.mark.parametrize(
    ("turn", "behind", "n_found"),
    [
        ("image = decode(z)", "return image", 1),
        ("image = decode(x)", "return image", 0),  # what is measured: its state does not go in
        ("image = decode(z)\n    z = z + image", "return image", 0),
        ("image = decode(z)\n    images.append(image)", "return images", 0),
    ],
)
def test_a_result_of_which_the_last_turn_alone_is_read(turn: str, behind: str, n_found: int) -> None:
    text = f"def f(x, z, images):\n  for i in range(9):\n    z = z - net(z)\n    {turn}\n  {behind}\n"
    assert [each.line for each in found("unread-result", ran(text, "4@f: conv2d"))] == [4] * n_found


@pytest.mark.parametrize(
    ("reads", "n_found"),
    [
        ("if step % 100 == 0:\n      print(norm)", 1),
        ("if not step % 100 and x.ok:\n      print(norm)", 1),
        ("if step > 100:\n      print(norm)", 0),
        ("if step % 100 == 0:\n      print(norm)\n    seen.append(norm)", 0),
        ("seen.append(norm)", 0),
    ],
)
def test_a_result_that_one_of_several_turns_reads(reads: str, n_found: int) -> None:
    text = (
        f"def f(x, seen, n):\n  for step in range(n):\n    norm = measure(x)\n    x = x + 1\n    {reads}\n  return x\n"
    )
    assert [each.line for each in found("unread-result", ran(text, "3@f: linalg_svd"))] == [3] * n_found


def test_a_result_that_is_computed_where_it_is_read_is_fine() -> None:
    text = "def f(x):\n  while x.ok:\n    if x.step % 9 == 0:\n      norm = measure(x)\n      print(norm)\n"
    assert found("unread-result", ran(text, "4@f: linalg_svd")) == []
