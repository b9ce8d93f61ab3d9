"""Networks that are called several times on small batches, where one call of both batches would do."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from tests.support.stepped import stepped

CALLS = "net.py:{}@forward > aten::layer{}#operator"
REGION, MODULE = "torch: forward", "/x/site-packages/torch/nn/modules/module.py:3@_call_impl"
GUIDED = "sample.py:20@main > sample.py:{}@guided"


def called(*lines: int, layers: int = 30, module: int = 7, around: str = REGION) -> Profile:
    """A function calls a module at each of these lines, then subtracts the results.

    Args:
        lines: Of the calls; one that is there twice makes both calls.
        layers: Operators of each call.
        module: The line of the module that the last call is of.
        around: What is recorded around it.
    """
    text, at = [], 0
    for number, line in enumerate(lines):
        text += [f"host {at}-{at + 30 * layers} {GUIDED.format(line)} > {REGION}"] * (around == REGION)
        for layer in range(layers):
            path = (
                f"{GUIDED.format(line)} > {around} > {CALLS.format(module if number == len(lines) - 1 else 7, layer)}"
            )
            text.append(f"host {at}-{at + 20} {path} ->{at + 1}")
            text.append(f"gpu {at + 25}-{at + 27} {path} > gemm#kernel <-{at + 1}")
            at += 30
    subtracts = f"{GUIDED.format(9)} > aten::sub#operator"
    text += [f"host {at}-{at + 5} {subtracts} ->{at + 1}", f"gpu {at + 8}-{at + 9} {subtracts} > sub#kernel <-{at + 1}"]
    return stepped("\n".join(text), at + 30)


def found(profile: Profile) -> list[Finding]:
    return analysis(Evidence(profile), ["twin-calls"]).findings


@pytest.mark.parametrize("lines", [(5, 6), (5, 5)], ids=["two lines", "one line"])
def test_a_module_that_a_step_calls_twice_is_found_where_it_is_called(lines: tuple[int, int]) -> None:
    (finding,) = found(called(*lines))
    assert finding.line in lines
    assert finding.message.startswith("the same modules are called 2 times, one after the other, with 60 launches")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.34, abs=0.01)  # nine tenths of half of these waits


@pytest.mark.parametrize(
    "profile",
    [called(5), called(5, 6, module=8), called(5, 6, layers=20), called(*range(1, 7))],
    ids=["one call", "another module", "few launches", "layers"],
)
def test_other_calls_of_modules_are_fine(profile: Profile) -> None:
    assert found(profile) == []


@pytest.mark.parametrize(("lines", "n_found"), [((5, 6), 1), ((5, 5), 0)], ids=["two lines", "one cannot be counted"])
def test_without_regions_lines_are_compared(lines: tuple[int, int], n_found: int) -> None:
    assert len(found(called(*lines, around=MODULE))) == n_found
