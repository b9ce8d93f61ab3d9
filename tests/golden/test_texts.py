"""What is said of slow programs by their text, which their recordings hold, and what is not said of repaired ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.report import answered
from bragg.model import Finding

RECORDINGS = Path(__file__).parent / "recordings/texts"


def found(name: str) -> dict[str, Finding]:
    """The first finding of each rule."""
    (recording,) = RECORDINGS.glob(f"h?00-{name}.bragg")
    told = answered(formats.load(recording)).worth(0.05)
    return {each.rule: each for each in reversed(told)}


@pytest.mark.parametrize(
    ("name", "rule", "line", "least_share"),
    [
        ("causal_add", "masked-attention", 19, 0.2),
        ("cumsum_matmul", "structured-product", 15, 0.5),
        ("kron", "structured-product", 6, 0.5),
        ("separable", "structured-product", 15, 0.5),
        ("tenant_lora", "structured-product", 36, 0.4),
        ("last_position", "late-part", 16, 0.7),
        ("prefix", "whole-prefix", 26, 0.5),
        ("mcmc", "repeated-evaluation", 18, 0.4),
        ("frozen_features", "loop-invariant", 25, 0.1),
        ("softmax_log", "cheaper-operator", 8, 0.3),
        ("unfold_conv", "cheaper-operator", 7, 0.5),
        ("fft_complex", "cheaper-operator", 6, 0.3),
        ("deterministic", "switched-off", 6, 0.2),
        ("triton_epilogue", "unfused-epilogue", 19, 0.5),
        ("weather_downscale", "type-copies", 29, 0.2),  # where the program asks for copies
        ("hmm", "cheaper-operator", 10, 0.3),
        ("cosine_pairs", "cheaper-operator", 6, 0.8),
        ("mlm_head", "late-part", 16, 0.2),  # a mask chooses from what it computes
        ("ode_repeat", "same-call", 16, 0.5),
        ("weight_norm", "repeated-parametrization", 19, 0.2),
        ("tanimoto_screen", "small-tiles", 41, 0.3),  # where the sizes of the tiles stand
        ("heat_pinn", "anomaly-mode", 65, 0.5),  # where it is switched on
        ("crop_segmenter", "late-layer", 49, 0.4),
        ("passage_reranker", "late-part", 60, 0.4),  # where the last position is taken of what a function computes
        ("lightcurve_sampler", "cheaper-call", 34, 0.4),
        ("landcover_eval", "pass-per-value", 45, 0.2),
        ("surface_operator", "product-order", 31, 0.4),  # a sum stands between both products
        ("relevance_judge", "late-part", 61, 0.5),  # with the logarithms of a softmax
        ("herbarium_probe", "unread-gradients", 38, 0.5),  # behind warm-up steps
        ("coo_steps", "repeated-coalescing", 15, 0.5),
        ("whale_calls", "double-precision", 31, 0.3),  # where numbers of 64 bits come from
        ("burst_localisation", "chained-kernels", 55, 0.5),  # the first of three launches
    ],
)
def test_the_cause_is_named_at_its_line(name: str, rule: str, line: int, least_share: float) -> None:
    finding = found(f"{name}_slow")[rule]
    assert (Path(finding.file).name, finding.line) == (f"{name}_slow.py", line)
    assert finding.gain is not None
    assert least_share < finding.gain.share < 1


@pytest.mark.parametrize(
    ("name", "rule", "line"),
    [
        ("adjacency", "structured-product", 20),
        ("moe_dense", "all-experts", 19),
        ("protein_embed", "padded-batch", 38),
        ("ticket_embedder", "padded-batch", 70),
    ],
)
def test_a_cause_may_have_no_known_gain(name: str, rule: str, line: int) -> None:
    finding = found(f"{name}_slow")[rule]
    assert (Path(finding.file).name, finding.line, finding.gain) == (f"{name}_slow.py", line, None)


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("causal_add", {"masked-attention"}),
        ("mcmc", {"repeated-evaluation"}),
        ("last_position", {"late-part"}),
        ("separable", {"structured-product"}),
        ("adjacency", {"structured-product"}),
        ("triton_epilogue", {"unfused-epilogue"}),
        ("tenant_lora", {"structured-product", "part-of-product", "loop-invariant"}),
        ("protein_embed", {"padded-batch", "masked-attention"}),
        ("crop_segmenter", {"late-layer"}),
        ("passage_reranker", {"late-part"}),
        ("lightcurve_sampler", {"cheaper-call"}),
        ("landcover_eval", {"pass-per-value"}),
        ("surface_operator", {"product-order"}),
        ("relevance_judge", {"late-part"}),
        ("lightcurve_sampler", {"product-order"}),
        ("coo_steps", {"repeated-coalescing"}),
        ("mlm_targets", {"ignored-targets", "late-part", "late-product"}),
        ("burst_localisation", {"chained-kernels"}),
        ("plasma_push", {"slow-arithmetic", "uncoalesced-access"}),  # its columns take 89 % of the bandwidth
    ],
)
def test_repaired_programs_are_without_it(name: str, rules: set[str]) -> None:
    assert not rules & found(f"{name}_fast").keys()


def test_a_head_whose_loss_ignores_most_targets_is_named() -> None:
    finding = found("mlm_targets_slow")["ignored-targets"]
    assert (finding.line, finding.gain and round(finding.gain.share, 1)) == (18, 0.5)


def test_a_hessian_whose_rows_are_launched_at_once_costs_a_program_that_waits_for_the_host_little() -> None:
    assert "whole-derivative" not in found("sharpness_slow")


def test_a_call_that_reads_parameters_is_not_said_to_stay_the_same() -> None:
    assert "loop-invariant" not in found("column_physics_slow")


def test_other_lines_of_a_finding_lead_to_where_a_value_is_used_or_comes_from() -> None:
    late, prefix = found("last_position_slow")["late-part"], found("prefix_slow")["loop-invariant"]
    assert [each.line for each in late.places] == [21, 31]  # takes the last position
    assert (prefix.line, prefix.places[0].line) == (16, 26)  # the encoder, and the loop
