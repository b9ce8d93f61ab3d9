from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
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
