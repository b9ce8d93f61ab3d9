"""Optimizers that update parameters one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from tests.support.stepped import launched, stepped

STEP = "Optimizer.step#SGD.step#operator"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4>"


def found(profile: Profile) -> list[Finding]:
    result = analysis(Evidence(profile), ["optimizer-loop"])
    assert not result.skipped, result.skipped
    return [each for each in result.findings if each.gain is None or each.gain.share >= 0.01]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("Adam", "fused=True (or foreach=True) for the optimizer"),
        ("NAdam", "foreach=True for the optimizer"),
        ("Momentum", "torch._foreach_mul_, torch._foreach_add_ and the like over the list of all parameters"),
    ],
)
def test_an_optimizer_is_asked_for_what_it_has(kind: str, change: str) -> None:
    program = stepped(launched(40, STEP, ELEMENTWISE, 2, 10), 420)
    frames = program.tree.frames
    named = frames.replace(name=[name.replace("#SGD.", f"#{kind}.") for name in frames.name])
    (finding,) = found(replace(program, tree=replace(program.tree, frames=named)))
    assert finding.hint.startswith(change)


@pytest.mark.parametrize(
    ("made", "line"),
    [("SGD(net.parameters(), foreach=False)", 2), ("SGD(groups, **options)", 2), ("SGD(net.parameters())", 6)],
)
def test_an_optimizer_is_found_where_its_options_are_given(made: str, line: int) -> None:
    text = f"def build(net):\n  return torch.optim.{made}\n\ndef main(net):\n  sgd = build(net)\n  sgd.step()\n"
    program = stepped(launched(40, f"train.py:6@main > {STEP}", ELEMENTWISE, 2, 10), 420)
    (finding,) = found(replace(program, sources={"train.py": text}))
    assert finding.line == line


@pytest.mark.parametrize(("launches", "is_found"), [(4, True), (1, False)])
def test_few_parameters_are_a_loop_too(launches: int, is_found: bool) -> None:
    path = f"{STEP} > /lib/torch/optim/sgd.py:330@_single_tensor_sgd > aten::add_#operator"
    assert bool(found(stepped(launched(launches, path, ELEMENTWISE, 2, 10), 220))) is is_found
