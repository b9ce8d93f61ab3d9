"""What is said of slow programs that were written without a look at the rules, recorded on an H200 beside others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.report import answered
from bragg.model.finding import Gain
from bragg.views.text.bounds_text import bounds_sentence

RECORDINGS = Path(__file__).parent / "recordings/unseen"


@pytest.mark.parametrize(
    ("name", "rules", "line"),
    [
        ("distances", ["pairwise-differences"], 5),
        # Elementwise kernels of doubles have mangled names.
        ("numpy_scale", ["double-precision"], 8),
        # Putting 512 rows together takes the host long, and plans nothing.
        ("row_by_row", ["small-steps"], 6),
        # Rows of an array one by one: two functions of JAX that take a row, and one of the program.
        ("one_by_one_jax", ["eager-jax"], 15),
        # A call that compiles each time waits for no other code.
        ("lengths_jax", ["recompilation"], 17),
        # JAX prints with an operation of its own, not with a function of the program.
        ("printed_jax", ["host-callbacks", "short-jitted-calls"], 10),
        # One tensor a step, which takes the host less long than the copy.
        ("positions", ["cpu-work", "host-fills"], 7),
    ],
)
def test_the_cause_is_named_at_its_line_and_no_other(name: str, rules: list[str], line: int) -> None:
    found = answered(formats.load(RECORDINGS / f"h200-{name}.bragg")).worth(0.05)
    assert [each.rule for each in found] == rules
    assert (Path(found[0].file).name, found[0].line) == (f"{name}_slow.py", line)
    assert isinstance(found[0].gain, Gain)
    assert found[0].gain.share > 0.45


@pytest.mark.parametrize(
    ("name", "rule", "line"),
    [
        ("alibi_scorer", "rebuilt-table", 16),
        ("next_word_server", "part-of-product", 50),
        ("rollout_autocast", "type-copies", 48),  # where autocast is entered, not where it casts
        ("ocean_ensemble", "short-turns", 43),
        ("reactor_implicit", "repeated-factorization", 31),
        ("star_opacity", "pageable-copies", 46),
        ("bias_gelu_ffn", "uncoalesced-access", 16),
        ("causal_flash", "masked-turns", 18),
        ("int8_linear", "widened-product", 28),
        ("tone_histogram", "atomics-on-one-address", 16),
        ("cell_offsets", "single-loads", 23),
        ("heat_plate", "idle-threads", 27),
        ("lesion_seg", "emptied-cache", 39),
        ("dune_restorer", "product-order", 25),
        ("room_reverb", "fft-lengths", 21),
        ("retrieval_recall", "partial-sort", 29),  # before products that would cost precision
        ("basket_pool", "masked-turns", 18),
        ("gelu_tanh", "slow-arithmetic", 14),
        ("depthwise_flat", "narrow-access", 17),
        ("equal_hist", "atomics-on-one-address", 19),
        ("rope_heads", "type-copies", 34),
        ("scaled_softmax", "idle-threads", 28),
        ("volume_groupnorm", "few-blocks", 45),
        ("rms_backward", "atomics-on-one-address", 32),
        ("nhwc_batchnorm", "uncoalesced-access", 20),
        ("gelu_linear", "register-spills", 44),
        ("residual_norm", "type-copies", 28),
        ("ctr_embedding", "dense-gradient", 71),
        ("room_acoustics", "double-precision", 15),  # where 64 bits are enabled
        ("ecg_unitary_rnn", "repeated-parametrization", 39),
        ("keyword_distill", "unread-gradients", 45),
    ],
)
def test_the_first_finding_is_the_cause_and_the_repaired_program_is_without_it(name: str, rule: str, line: int) -> None:
    slow, fast = (answered(formats.load(RECORDINGS / f"h100-{name}_{kind}.bragg")) for kind in ("slow", "fast"))
    first = slow.worth(0.05)[0]
    assert (first.rule, Path(first.file).name, first.line) == (rule, f"{name}_slow.py", line)
    assert rule not in {each.rule for each in fast.worth(0.0)}


def test_a_layout_that_an_atomic_needs_is_told_with_the_atomic_alone() -> None:
    found = answered(formats.load(RECORDINGS / "h100-rms_backward_slow.bragg")).worth(0.0)
    assert not [each for each in found if each.rule == "layout-conversion-in-loop"]


def test_a_gpu_that_worked_is_said_to_have_worked_where_it_is_not_known_when() -> None:
    profile = formats.load(RECORDINGS.parent / "kernels" / "h100-units.bragg")
    assert "not known: the GPU worked 8.56 s, " in bounds_sentence(answered(profile).bounds)


def test_autocast_is_not_kept_while_weights_change() -> None:
    """It would go on with the weights that it cast first."""
    rollout, training = (
        answered(formats.load(path)).worth(0.0)
        for path in (RECORDINGS / "h100-rollout_autocast_slow.bragg", RECORDINGS.parent / "h100-trainer_gpt2.bragg")
    )
    casts = [next(each for each in found if each.rule == "type-copies") for found in (rollout, training)]
    assert [each.hint.startswith("enter autocast once around the loop") for each in casts] == [True, False]
    assert casts[1].hint.startswith("keep the weights in bfloat16, if the training stands it")


def test_a_gpu_that_other_programs_use_is_not_said_to_wait_for_the_host() -> None:
    bounds = answered(formats.load(RECORDINGS / "h200-shared_gpu.bragg")).bounds
    assert bounds.by == "other work"
    assert (bounds.parts[0].name, bounds.parts[0].is_gpu) == ("other streams, copies, events or programs", False)
    assert bounds.parts[0].share == pytest.approx(0.743, abs=0.001)
