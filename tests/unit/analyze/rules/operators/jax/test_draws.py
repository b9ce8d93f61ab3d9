"""Draws from one distribution of JAX that make a number for each pair of a draw and a class."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.stepped import stepped


def found(text: str, operation: str = "reduce") -> list[Finding]:
    """Of a program whose line 2, called by line 20, works 400 us of 500 us in an operation."""
    call = "train.py:20@main > jit(step)#operator"
    profile = stepped(f"host 0-10 {call}\ngpu 20-420 {call} > {operation}#operator > fusion#kernel", 500)
    frames = profile.tree.frames
    frames.file[frames.name.index(operation)], frames.line[frames.name.index(operation)] = "train.py", 2
    return analysis(Evidence(replace(profile, sources={"train.py": f"import jax\n{text}"})), ["cheaper-call"]).findings


def test_many_draws_from_one_distribution_need_one_number_each() -> None:
    (finding,) = found("chosen = jax.random.categorical(key, jnp.log(freq), shape=(n,))")
    assert (finding.file, finding.line) == ("train.py", 2)
    assert finding.message == (
        "each draw of categorical(..., shape=...) makes a random number for each class: 1 launch a step, "
        "100 % of the GPU time"
    )
    assert "jax.random.choice(key, k, shape, p=p)" in finding.hint
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.8 * 0.9, abs=0.01)


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("chosen = jax.random.categorical(key, logits)", "reduce"),  # one draw of each row
        ("chosen = jax.random.categorical(key, logits, shape=logits.shape[:-1])", "reduce"),
        ("chosen = jax.random.categorical(key, logits, shape=())", "reduce"),
        ("chosen = jax.random.categorical(key, logits, shape=(n,), replace=False)", "reduce"),  # needs all of them
        ("chosen = jax.random.categorical(key, x @ w, shape=(n,))", "dot_general"),
        ("chosen = categorical(x, shape=(n,))", "reduce"),  # of the program's own
        ("edges = jnp.cumsum(freq)", "reduce"),
    ],
)
def test_other_draws_are_not_told(text: str, operation: str) -> None:
    assert found(text, operation) == []
