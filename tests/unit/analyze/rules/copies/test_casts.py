"""Where casts of weights are told that autocast makes, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.model import Profile
from tests.support.told_by_text import found, ran


def served(text: str, path: str) -> Profile:
    """A program without an optimizer, of which a line casts weights."""
    profile = ran(text, f"{path}: linear/to/direct_copy_kernel")
    frames = profile.tree.frames
    names = [name.replace("Optimizer.step", "serve") for name in frames.name]
    return replace(profile, tree=replace(profile.tree, frames=replace(frames, name=names)))


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("@torch.autocast('cuda')\ndef step(net, x):\n  return net(x)", "3@step", 1),
        ("def step(net, x):\n  with amp.autocast('cuda'):\n    for y in x:\n      z = net(y)\n", "4@step", 2),
        (
            "def f(net, x):\n  return net(x)\ndef g(net, x):\n  with torch.autocast('cuda'):\n    f(net, x)",
            "5@g > 2@f",
            4,
        ),
        ("def step(net, x):\n  with torch.no_grad():\n    z = net(x)\n", "3@step", 3),
    ],
)
def test_casts_that_autocast_makes_are_told_where_it_is_entered(text: str, path: str, line: int) -> None:
    assert [each.line for each in found("type-copies", served(text, path))] == [line]


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ("", "enter autocast once around the loop"),
        ("for p in net.parameters():\n  p.requires_grad_(False)\n", "convert the weights to bfloat16 once"),
        ("for p in net.parameters():\n  p.requires_grad = False\n", "convert the weights to bfloat16 once"),
    ],
)
def test_autocast_keeps_no_casts_of_weights_without_gradients(before: str, change: str) -> None:
    text = before + "with torch.autocast('cuda'):\n  y = net(x)\n"
    (finding,) = found("type-copies", served(text, f"{len(text.splitlines())}@<module>"))
    assert finding.hint.startswith(change)
