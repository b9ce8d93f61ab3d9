"""The line at which warps wait most is named with what they wait for, and with the line that makes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Confidence, Finding, Metric, MetricKind, Profile
from tests.support.sampled_kernels import CODE, FILE, sampled_profile

RULE = "waiting-line"
# The line after the load uses what it loads.
USE = [CODE[0], CODE[1]._replace(text="FMNMX R6, R6, R3 ;"), CODE[2]._replace(text="FADD R5, R1, R3 ;")]


def found(profile: Profile) -> list[Finding]:
    last_ns = int(profile.total("gpu_time"))
    meta = {**profile.meta, "gpu_busy_ns": {"0": last_ns}, "gpu_first_ns": 0, "gpu_last_ns": last_ns}
    return analysis(Evidence(replace(profile, meta=meta)), [RULE]).findings


def waiting(profile: Profile, reason: str, offset: str, count: int) -> Profile:
    """The profile with other samples: `count` of 100 wait at one instruction."""
    names = [profile.tree.frames.name[frame] for frame in profile.tree.frame]
    kept = {name: metric for name, metric in profile.metrics.items() if not name.startswith("stalled_")}
    own = np.array([count if name == offset else 0 for name in names])
    return replace(profile, metrics={**kept, reason: Metric(reason, "1", MetricKind.INCLUSIVE, own)})


def test_a_wait_for_memory_is_named_and_its_gain_is_not_known_without_the_bytes() -> None:
    (finding,) = found(sampled_profile())
    assert (finding.file, finding.line, finding.kernel) == (FILE, 8, "softmax<BLOCK=1024 w4 s3>")
    assert finding.message.startswith(
        "softmax waits at line 8 in 55 % of its samples for data of global or local memory"
    )
    assert (finding.gain, finding.confidence) == (None, Confidence.HEURISTIC)
    assert finding.hint.startswith("load earlier or ahead")
    assert finding.evidence[0].value == pytest.approx(0.55)
    assert finding.evidence[0].unit == "share"


def test_the_line_that_makes_the_value_is_to_blame() -> None:
    profile = waiting(sampled_profile(instructions=USE), "stalled_long_scoreboard", "+0x20", 9)
    metrics = {**profile.metrics, "num_samples": profile.metrics["stalled_long_scoreboard"]}
    (finding,) = found(replace(profile, metrics=metrics))
    assert "waits at line 10 in 100 % of its samples" in finding.message
    assert "that line 8 makes" in finding.message
    assert (finding.line, [place.line for place in finding.places]) == (8, [10])


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("stalled_barrier", "let warps meet less often"),
        ("stalled_mio_throttle", "touch shared memory less often"),
        ("stalled_math_pipe_throttle", "compute less"),
        ("stalled_no_instructions", "make the code smaller"),
    ],
)
def test_each_wait_has_its_change_and_a_fifth_of_it_is_the_gain(reason: str, change: str) -> None:
    (finding,) = found(waiting(sampled_profile(), reason, "+0x10", 40))
    assert finding.hint.startswith(change)
    assert finding.line == 3
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.4 / 5 * 9 / 17)  # of the GPU time the kernel has 9 of 17 us
    assert finding.gain.saving_is_measured


@pytest.mark.parametrize(
    ("reason", "count"), [("stalled_gmma", 90), ("stalled_wait", 90), ("stalled_selected", 90), ("stalled_barrier", 19)]
)
def test_what_fast_kernels_wait_for_is_fine(reason: str, count: int) -> None:
    assert found(waiting(sampled_profile(), reason, "+0x0", count)) == []


def test_without_samples_the_option_is_named() -> None:
    skipped = analysis(Evidence(sampled_profile(samples=False)), [RULE]).skipped
    assert (skipped[RULE].what, skipped[RULE].option) == ("samples of instructions", "--sample")
