"""What is said of programs of JAX that do what they need not, recorded on H100s beside others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.report import answered

RECORDINGS = Path(__file__).parent / "recordings/jax"


@pytest.mark.parametrize(
    ("name", "rule", "line"),
    [
        ("kvcache", "undonated-argument", 8),
        ("fftlater", "complex-transform", 12),
        ("lasttoken", "part-of-result", 12),
        ("linattn", "costly-product-order", 9),
        ("pairwise", "pairwise-sums", 11),
        ("topk", "part-of-result", 10),
        ("wheres", "both-branches", 13),
        ("complex_of_real", "complex-product", 4),
        ("decay_fit", "reverse-jacobian", 11),  # within vmap
        ("diagonal", "diagonal-matrix", 4),
        ("gather_then_layer", "product-after-lookup", 4),
        ("map_scan", "independent-turns", 6),
        ("same_args", "same-arguments", 4),
        ("separable", "wide-filter", 7),
        ("wide_fwd", "forward-jacobian", 7),
        ("numpy_noise", "host-code", 8),  # before an array of NumPy is given to a function
    ],
)
def test_the_first_finding_is_what_the_compiled_program_need_not_do(name: str, rule: str, line: int) -> None:
    first = answered(formats.load(RECORDINGS / f"h100-{name}.bragg")).worth(0.05)[0]
    assert (first.rule, Path(first.file).name, first.line) == (rule, f"{name}.py", line)
    assert first.gain is not None
    assert first.gain.share > 0.2


def test_what_numpy_draws_before_a_launch_is_no_compilation_though_the_program_compiled_for_longer() -> None:
    bounds = answered(formats.load(RECORDINGS / "h200-speech_frames_slow.bragg")).bounds
    shares = {each.name: round(each.share, 2) for each in bounds.parts}
    assert bounds.by == "the host"
    assert (shares["code that launches nothing"], shares["compilation"]) == (0.32, 0.18)
