from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from tests.support.stepped import stepped

CALL = "train.py:20@main > jit(step)#operator"
EXAMPLES = "jax.vmap(jax.value_and_grad(loss), (None, 0))(p, x)"


@pytest.mark.parametrize(
    ("made", "read", "n_found"),
    [
        (EXAMPLES, "jax.tree.map(lambda g: g.mean(0), grads)", 1),
        (EXAMPLES, "jax.tree.map(lambda g: g.mean(0), clipped(grads))", 0),
        (EXAMPLES, "grads", 0),
        ("jax.value_and_grad(loss)(p, x)", "jax.tree.map(lambda g: g.mean(0), grads)", 0),
    ],
)
def test_gradients_of_examples_that_are_only_averaged_are_found(made: str, read: str, n_found: int) -> None:
    work = f"gpu 20-320 {CALL} > [backward]#state > conv#operator > dgrad#kernel\ngpu 320-400 {CALL} > conv#kernel"
    text = f"def step(p, x):\n  losses, grads = {made}\n  return losses.mean(), {read}\n"
    profile = replace(stepped(f"host 0-10 {CALL}\n{work}", 420), sources={"train.py": text})
    found = analysis(Evidence(profile), ["example-gradients"]).findings
    assert [each.line for each in found] == [2] * n_found
