"""Idle time that the recorder folds as records come, against what the timeline of the same run says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bragg.analyze.answer import answer
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.idle import idle_times
from bragg.analyze.idle_paths import with_idle_paths
from bragg.analyze.wall.parts import wall_parts
from bragg.cli.main import command_line
from bragg.model import FrameKind, Profile
from bragg.model.trace import SliceTable
from bragg.views.text.answer_text import sentences
from tests.support.fake_gpu_runs import START, Record, Run

PROGRAM = """
import time
def wait(ns):
    until = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < until: pass
def train(n, slow):
    with bragg.scope("train"):
        for step in range(n):
            began = time.perf_counter_ns()
            with bragg.scope("forward"):
                for _ in range(4):
                    with bragg.scope("mm"): gpu.launch("matmul")
                    wait(30_000)
            forward = time.perf_counter_ns() - began
            with bragg.scope("data"):
                wait(max(slow, 2 * forward))  # the slower one, also where forward was put aside for a second
                gpu.copy(Copy.HOST_TO_DEVICE, 4096)
    gpu.synchronize()
"""


def without_timeline(profile: Profile) -> Profile:
    return replace(profile, slices=SliceTable.empty())


def idle_by_path(profile: Profile) -> dict[str, int]:
    """By path of scopes and states, ns: what a call of the GPU's API had is its caller's."""
    found = with_idle_paths(profile)
    tree, own = found.tree, found.own("gpu_idle_time")
    by_path: dict[str, int] = {}
    for node in np.flatnonzero(own).tolist():
        above = tree.parent[node] if tree.kind[node] == FrameKind.GPU_API else node
        names = [tree.frames.name[tree.frame[at]] for at in tree.path(int(above)) if at]
        by_path["/".join(names)] = by_path.get("/".join(names), 0) + int(own[node])
    return by_path


def check_agreement(profile: Profile) -> None:
    truths, folded = idle_times(profile), idle_times(without_timeline(profile))
    assert len(truths) == len(folded)
    for truth, found in zip(truths, folded, strict=True):
        assert found.device == truth.device
        assert found.n_gaps == truth.n_gaps
        for name in ("idle_ns", "late_launch_ns", "queued_ns"):
            assert getattr(found, name) == pytest.approx(getattr(truth, name), rel=1e-6, abs=10)
    truth_of, found_of = idle_by_path(profile), idle_by_path(without_timeline(profile))
    total = sum(truth_of.values())
    for path in truth_of.keys() | found_of.keys():
        assert found_of.get(path, 0) == pytest.approx(truth_of.get(path, 0), abs=0.02 * total), path


def test_folded_idle_time_is_that_of_the_timeline(record: Record) -> None:
    run = record(PROGRAM + "train(300, 200_000)", data="trace", CLOCK="real")
    assert idle_by_path(run.main)["train/data"] > 0.3 * sum(idle_by_path(run.main).values())
    check_agreement(run.main)


def with_steady_state(record: Record) -> Run:
    """A run without a timeline, which ends soon after its last work."""
    run = record(PROGRAM + "train(300, 200_000)", CLOCK="real")
    parts = wall_parts(run.main)
    assert parts is not None
    assert parts.steady is not None
    return run


def test_it_is_without_a_timeline_in_the_file(record: Record) -> None:
    run = with_steady_state(record)
    assert len(run.main.slices) == 0
    by_path = idle_by_path(run.main)
    assert max(by_path, key=by_path.__getitem__) == "train/data"
    (idle,) = idle_times(run.main)
    assert idle.late_launch_ns is not None
    assert idle.late_launch_ns > 0.5 * idle.idle_ns
    said = run.talk.splitlines()
    title = said.index("in the steady state the GPU waited for the host: for these and the code before them:")
    assert said[title + 1].endswith("of it  train → data")
    text = " ".join(sentences(run.main, answer(Evidence(run.main), np.arange(len(run.main.tree.frames)))))
    assert "waiting for the host to launch" in text
    assert re.search(r"The GPU waited \d\d\.\d % of the steady state for (train → )?data, ", text), text


def test_view_shows_it_without_a_timeline(record: Record, tmp_path: Path) -> None:
    with_steady_state(record)
    done = CliRunner().invoke(command_line, ["view", str(tmp_path / "out.bragg"), "--idle"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert any("data" in line and "%" in line for line in lines)
    assert any("GPU 0 idled" in line and "of the steady state" in line for line in lines)


def test_it_is_left_out_where_it_is_not_wanted(record: Record, tmp_path: Path) -> None:
    run = record(PROGRAM + "train(30, 200_000)", START, "--no-idle", CLOCK="real")
    assert run.main.meta["statistics"]["launches"] == 30 * 5
    assert len(run.main.idle) == 0
    assert sum(run.main.meta["gpu_activity"]["0"]["launches"]) == 30 * 5
    done = CliRunner().invoke(command_line, ["view", str(tmp_path / "out.bragg"), "--idle"])
    assert str(done.exception) == "this run was recorded with --no-idle"


def test_streams_devices_and_graphs_agree_too(record: Record) -> None:
    run = record(
        PROGRAM
        + """
other = FakeCuda(1)
other.use_device(1)
streams = [other.stream(), other.stream()]
with bragg.scope("second"):
    for step in range(100):
        with bragg.scope("copy"): wait(40_000)
        for stream in streams: other.launch("fused", stream)
gpu.use_device(0)
train(50, 100_000)
stream = gpu.stream()
with gpu.capture(stream) as graph:
    for name in ("a", "b"): gpu.launch(name, stream)
executable = gpu.instantiate(graph)
with bragg.scope("replay"):
    for step in range(100):
        with bragg.scope("think"): wait(60_000)
        gpu.launch_graph(executable, stream)
gpu.synchronize()
""",
        data="trace",
        CLOCK="real",
        DEVICES=2,
    )
    assert {idle.device for idle in idle_times(run.main)} == {0, 1}
    assert {"second/copy", "replay/think"} <= idle_by_path(run.main).keys()
    check_agreement(run.main)
