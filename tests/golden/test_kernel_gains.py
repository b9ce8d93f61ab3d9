"""Gains of kernels, as factors: an estimate of 70 % for 95 % is a factor of 3 for one of 20."""

from __future__ import annotations

from pathlib import Path

from tests.golden.kernel_gains import kernel_gains, table

ROOT = Path(__file__).parents[2]


def test_kernels_become_about_as_fast_as_rules_estimate_and_the_docs_say_which() -> None:
    found = kernel_gains()
    assert {each.program for each in found if not each.is_near} == {"gelu_linear", "one_wave"}  # more than was said
    assert table(found) in (ROOT / "docs/reference/rules.md").read_text()
