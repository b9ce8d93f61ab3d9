from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.stepped import stepped

VALUE, STEP = "train.py:20@main > jit(loss)#operator", "train.py:21@main > jit(loss)#operator"


def found(value_us: int, layer: str, backward: str = "[backward]#state") -> list[int]:
    """Lines of findings in steps that compute a value in so long, then 100 us forward and 200 us backward."""
    text = (
        f"host 0-10 {VALUE}\nhost 10-20 {STEP}\ngpu 30-{30 + value_us} {VALUE} > {layer}#operator > gemm#kernel\n"
        f"gpu 300-400 {STEP} > dense#operator > gemm#kernel\n"
        f"gpu 400-600 {STEP} > {backward} > dense#operator > gemm#kernel"
    )
    profile = stepped(text, 700)
    frames = profile.tree.frames
    for row, name in enumerate(frames.name):
        if name in ("dense", "other"):
            frames.file[row], frames.line[row] = "model.py", {"dense": 5, "other": 6}[name]
    return [each.line for each in analysis(Evidence(profile), ["repeated-forward"]).findings]


@pytest.mark.parametrize(
    ("value_us", "layer", "backward", "lines"),
    [
        (100, "dense", "[backward]#state", [20]),
        (100, "other", "[backward]#state", []),
        (30, "dense", "[backward]#state", []),  # of fewer rows
        (250, "dense", "[backward]#state", []),
        (100, "dense", "forward", []),  # nobody computes gradients
    ],
)
def test_a_value_that_the_function_with_gradients_has_computed_is_found(
    value_us: int, layer: str, backward: str, lines: list[int]
) -> None:
    assert found(value_us, layer, backward) == lines


PROGRAM = """\
def step(a, b, x):
    {first}
    {second}
    return first, second
"""
FIRST, SECOND = (f"train.py:9@main > train.py:{line}@step > jit(loss)#operator" for line in (2, 3))


def gradients(first: str, second: str) -> list[Finding]:
    """Findings in steps that compute 100 us forward twice, and 100 us, then 150 us and 100 us backward."""
    text = f"host 0-10 {FIRST}\nhost 10-20 {SECOND}"
    for begin, path, parts in ((30, FIRST, ("dense",)), (300, SECOND, ("dense", "other"))):
        text += f"\ngpu {begin}-{begin + 100} {path} > dense#operator > gemm#kernel"
        for number, name in enumerate(parts):
            start = begin + 100 + 50 * number * 2
            text += f"\ngpu {start}-{start + 100} {path} > [backward]#state > {name}#operator > gemm#kernel"
    profile = stepped(text, 700)
    frames = profile.tree.frames
    for row, name in enumerate(frames.name):
        if name in ("dense", "other"):
            frames.file[row], frames.line[row] = "model.py", {"dense": 5, "other": 6}[name]
    source = PROGRAM.replace("{first}", first).replace("{second}", second)
    return analysis(Evidence(replace(profile, sources={"train.py": source})), ["repeated-forward"]).findings


def test_gradients_of_the_same_arguments_by_two_functions_are_found() -> None:
    (finding,) = gradients("first = of_a(a, b, x)", "second = of_b(a, b, x)")
    assert finding.line == 3
    assert {place.line for place in finding.places} >= {2, 9}
    assert finding.message.startswith("jitted functions compute the forward pass of the same arguments again")
    shares = [each.value for each in finding.evidence if each.name == "share of the GPU time"]
    assert shares == [pytest.approx(200 / 500)]  # the forward pass, and the gradient that the other one needs, too


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a = of_a(a, b, x)", "second = of_b(a, b, x)"),  # which the second one takes as it is then
        ("first = of_a(a, b, x)", "second = of_b(a, b, y)"),
        ("self.a = of_a(self.a, x)", "self.b = of_b(self.a, x)"),
    ],
)
def test_gradients_of_other_arguments_are_fine(first: str, second: str) -> None:
    assert gradients(first, second) == []
