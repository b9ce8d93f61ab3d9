"""Tensors that are copied whole to add to them, or to move them: by the text, and what only looks so."""

from __future__ import annotations

import pytest

from tests.support.told_by_text import found, ran

PROGRAM = """class Net:
  def f(self, x, past):
    {}
    return x
"""
GROWS, MOVES = "a tensor that grows", "a window of"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("self.keys = torch.cat([self.keys, x], 1)", 3, GROWS),
        ("self.keys[n] = torch.cat((self.keys[n], x), dim=1)", 3, GROWS),
        ("k = torch.cat([self.past[0], x], 2)\n    self.past = k, x", 3, GROWS),
        ("k, v = past\n    k = torch.cat([past[0], x], 2)\n    return x, (k, v)", 4, GROWS),
        ("pk, pv = past\n    k = torch.cat([pk, x], 2)\n    kept = (k, pv)\n    return x, kept", 4, GROWS),
        ("for t in range(n):\n      y = torch.cat([y, g(t)])", 4, GROWS),
        ("while more:\n      y = torch.cat([y, g(t)])", 4, GROWS),
        ("seen = [x]\n    for t in range(n):\n      y = torch.stack(seen, 1)\n      seen.append(y)", 5, GROWS),
        ("seen = []\n    for t in range(n):\n      seen.append(x)\n    y = torch.stack(seen)", 6, ""),
        ("for t in range(n):\n      seen = []\n      seen.append(x)\n      y = torch.stack(seen)", 6, ""),
        ("for skip in skips:\n      x = up(x)\n      x = torch.cat([x, skip], 1)", 5, ""),
        ("for layer in self.layers:\n      x = torch.cat([x, layer(x)], 1)", 4, ""),  # each needs all before it
        ("x = torch.cat([x, past], 1)", 3, ""),
        ("y = torch.cat([self.first, x], 1)", 3, ""),
        ("y = torch.cat([x[0], z], 1)\n    return x, y", 3, ""),  # nothing says that it comes back as x
        ("self.rows = torch.cat([self.rows[1:], x])", 3, MOVES),
        ("self.rows = torch.cat([x, self.rows[:-1]])", 3, MOVES),
        ("for t in range(n):\n      y = torch.cat([y[:, 1:], g(t)], 1)", 4, MOVES),
        ("self.rows = torch.roll(self.rows, -1, 0)\n    self.rows[-1] = x", 3, MOVES),
        ("self.rows = self.rows.roll(-1, dims=0)\n    self.rows[-1] = x", 3, MOVES),
        ("self.rows = torch.roll(self.rows, 1, 0)", 3, ""),  # the same rows in another order
        ("self.rows[:-1] = self.rows[1:].clone()", 3, MOVES),
        ("left = torch.roll(x, 1, 0)", 3, ""),
        ("self.rows[:-1] = x[1:].clone()", 3, ""),
    ],
)
def test_tensors_that_are_copied_whole_are_found(text: str, line: int, what: str) -> None:
    operators = "cat" if "cat" in text else "stack, roll, clone"
    told = found("growing-tensor", ran(PROGRAM.format(text), f"{line}@f: {operators}"))
    assert [each.line for each in told] == [line] * bool(what)
    assert all(each.message.startswith(what) for each in told)
    assert all(each.gain is not None and 0.5 < each.gain.share < 0.9 for each in told)


BEAMS = """class Search:
  def reorder(self, caches, beams, n):
    return {}
  def run(self, n):
    caches = [torch.{}(2, 64, 512) for _ in range(4)]
    for at in range(n):
      self.step(caches[0][:, {}])
      caches = self.reorder(caches, beams, n)
"""


@pytest.mark.parametrize(
    ("taken", "made", "read", "n_found"),
    [
        ("[cache.index_select(1, beams) for cache in caches]", "zeros", ": at + 1", 1),
        ("[cache[:, beams] for cache in caches]", "empty", ": at + 1", 1),
        ("[cache[beams, :n] for cache in caches]", "zeros", ": at + 1", 0),
        ("[cache[:, beams] for cache in caches]", "randn", ": at + 1", 0),  # all of it is of use
        ("[cache[:, beams] for cache in caches]", "zeros", "at", 0),
        ("[cache[:, beams].mean() for cache in self.others]", "zeros", ": at + 1", 0),
    ],
)
def test_caches_that_are_reordered_whole_are_found(taken: str, made: str, read: str, n_found: int) -> None:
    told = found("growing-tensor", ran(BEAMS.format(taken, made, read), "8@run > 3@reorder: index_select, index"))
    assert [(each.line, each.gain) for each in told] == [(3, None)] * n_found
    assert all(each.message.startswith("caches are gathered whole") for each in told)
