"""Turns of loops as programs counted them themselves, and as many as steps where these are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.comparing.gates import step_verdict
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.step_times import step_times
from bragg.analyze.wall.turns import turns_of
from bragg.grouping.regions import LOOP

RECORDINGS = Path(__file__).with_name("recordings")
# Turns that the program printed, and what it took for one, ms; None: it printed no rate.
PRINTED = {
    "texts/h200-relevance_judge_slow": (346, 13.02),
    "texts/h200-relevance_judge_fast": (1121, 4.017),
    "texts/h200-surface_operator_slow": (188, 23.99),
    "texts/h200-surface_operator_fast": (500, 9.008),
    "texts/h200-ticket_embedder_slow": (176, 25.72),
    "texts/h100-passage_reranker_slow": (500, None),
    "texts/h100-passage_reranker_fast": (500, None),
    "texts/h100-lightcurve_sampler_slow": (1800, None),
}
# Loops over layers or members alone, work that differs from turn to turn, and kernels that are launched a few times.
SILENT = ["texts/h100-protein_embed_slow", "unseen/h100-gelu_linear_slow", "pairs/h100-one_wave_slow"]

# Steps in each turn of the program's loop: frames of an utterance.
STEPS_A_TURN = {"h200-speech_frames_slow.bragg": 300}


@pytest.mark.parametrize("name", PRINTED)
def test_turns_are_those_that_the_program_counted(name: str) -> None:
    profile, (count, took_ms) = formats.load(RECORDINGS / f"{name}.bragg"), PRINTED[name]
    turns, parts = turns_of(profile), wall_parts(profile)
    assert turns
    assert turns.count == count
    assert parts
    assert parts.steady
    assert parts.steady.step_of == f"{LOOP}{turns.place}"
    assert count * 0.98 <= parts.steady.n_steps <= count
    if took_ms:
        assert parts.steady.step_ns / 1e6 == pytest.approx(took_ms, rel=0.01)


@pytest.mark.parametrize("name", SILENT)
def test_what_is_not_sure_is_not_said(name: str) -> None:
    assert turns_of(formats.load(RECORDINGS / f"{name}.bragg")) is None


def test_where_steps_are_known_turns_are_as_many() -> None:
    compared = 0
    for file in sorted(RECORDINGS.rglob("*.bragg")):
        profile = formats.load(file)
        turns, times = turns_of(profile), step_times(profile)
        if turns and times:
            compared += 1
            assert abs(STEPS_A_TURN.get(file.name, 1) * turns.count - times.count) <= 2, file.name
    assert compared >= 20


def test_a_request_became_faster() -> None:
    slow, fast = (formats.load(RECORDINGS / f"texts/h200-relevance_judge_{name}.bragg") for name in ("slow", "fast"))
    verdict = step_verdict([slow], [fast])
    assert verdict
    assert (verdict.before / 1e6, verdict.after / 1e6) == (
        pytest.approx(12.96, rel=0.01),
        pytest.approx(4.01, rel=0.01),
    )
