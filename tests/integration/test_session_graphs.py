"""CUDA graphs and sessions that a program starts and pauses itself, with the fake driver and the fake CUPTI."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import fake_cuda
from tests.support.fake_gpu_runs import CAPTURE, START, SUPPORT


@dataclass(frozen=True)
class Report:
    """What a program found in its own recording."""

    kernels: dict[str, int]
    statistics: dict[str, int]
    graphs: str


OwnRecordings = Callable[[str], tuple[list[Report], str]]

REPORT = """
def report(path):
    import json
    profile = bragg.load(path)
    tree, counts = profile.tree, profile.own("gpu_count")
    print(json.dumps({
        "kernels": {"/".join(tree.frames.name[tree.frame[step]] for step in tree.path(node)[1:]): int(counts[node])
                    for node in range(len(counts)) if counts[node]},
        "statistics": profile.meta["statistics"],
        "graphs": profile.meta["cuda"]["graphs"],
    }))
def record(name, **options):
    return bragg.start(name, context="shadow", backend="cuda", **options)
def finish(session):
    session.stop()
    report(session.path)
"""


@pytest.fixture
def own_recordings(tmp_path: Path, fakes_directory: Path) -> OwnRecordings:
    """Runs a program that records itself: what it reported, and its stderr."""

    def run(body: str) -> tuple[list[Report], str]:
        script = tmp_path / "program.py"
        script.write_text(START + CAPTURE + REPORT + dedent(body))
        environ = {**os.environ, **fake_cuda.environment(fakes_directory), "PYTHONPATH": str(SUPPORT)}
        done = subprocess.run(
            [sys.executable, str(script)],
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [Report(**json.loads(line)) for line in done.stdout.splitlines()], done.stderr

    return run


def test_a_graph_captured_before_recording_is_labelled_and_told_once(own_recordings: OwnRecordings) -> None:
    (late,), talk = own_recordings(
        """
        first, second = gpu.instantiate(captured("a")), gpu.instantiate(captured("b"))
        session = record("late.bragg")
        replay(first, 5)
        replay(second, 5, scope="other")
        replay(gpu.instantiate(captured("c")))
        finish(session)
        """
    )
    assert late.kernels == {
        "replay/<captured before recording>/a": 5,
        "other/<captured before recording>/b": 5,
        "replay/<captured_at>/capture/c": 1,
    }
    assert late.statistics["unknown_captures"] == 10
    assert talk.count("captured before recording") == 1


def test_a_graph_captured_before_and_instantiated_after_is_labelled(own_recordings: OwnRecordings) -> None:
    (late,), _ = own_recordings(
        """
        graph = captured("a")
        session = record("late.bragg")
        replay(gpu.instantiate(gpu.graph_of(graph)), 2)
        finish(session)
        """
    )
    assert late.kernels == {"replay/<captured before recording>/a": 2}


def test_graphs_captured_while_nothing_records_are_known(own_recordings: OwnRecordings) -> None:
    (report,), talk = own_recordings(
        """
        session = record("paused.bragg")
        session.deactivate()
        executable = gpu.instantiate(captured("k"))
        replay(executable, 3)
        session.activate()
        replay(executable, 2)
        finish(session)
        """
    )
    assert report.kernels == {"replay/<captured_at>/capture/k": 2}
    assert "captured before" not in talk


def test_whole_graphs_give_way_to_nodes_when_another_session_wants_them(own_recordings: OwnRecordings) -> None:
    (nodes, whole), talk = own_recordings(
        """
        whole = record("whole.bragg", graphs="graph")
        executable = gpu.instantiate(captured("k"))
        replay(executable, 2, scope="whole")
        nodes = record("nodes.bragg")
        replay(executable, 3)
        finish(nodes)
        replay(executable, 1, scope="after")
        finish(whole)
        """
    )
    assert nodes.kernels == {"replay/<captured_at>/capture/k": 3}
    assert {re.sub(r"\d+", "ID", path): count for path, count in whole.kernels.items()} == {
        "whole/<cuda graph ID>": 2,
        "replay/<captured_at>/capture/k": 3,
        "after/<captured_at>/capture/k": 1,
    }
    assert talk.count("another session wants the nodes") == 1


def test_whole_graphs_are_not_recorded_where_cupti_would_crash(own_recordings: OwnRecordings) -> None:
    (report,), talk = own_recordings(
        """
        old = gpu.instantiate(captured("old"))
        session = record("whole.bragg", graphs="graph")
        new = gpu.instantiate(captured("new"))
        replay(new, 2)
        session.deactivate()
        replay(old)
        session.activate()
        replay(old, 3)
        replay(new, 4)
        finish(session)
        """
    )
    assert {re.sub(r"\d+", "ID", path): count for path, count in report.kernels.items()} == {
        "replay/<cuda graph ID>": 2,
        "replay/<captured before recording>/old": 3,
        "replay/<captured_at>/capture/new": 4,
    }
    assert report.graphs == "node"
    assert talk.count("one was instantiated before recording") == 1


def test_a_million_replays_need_no_more_memory(own_recordings: OwnRecordings) -> None:
    (report,), talk = own_recordings(
        """
        import sys
        gpu.set_knob("call_ns", 10_000)
        def rss_kb():
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        session = record("million.bragg")
        def capture():
            with bragg.scope("model", metrics={"work": 1}): return captured("a")
        executable = gpu.instantiate(capture())
        sizes_kb = []
        for number in range(230):
            replay(executable, 10_000)
            if number % 2:
                gpu.update(executable, capture())
            else:
                gpu.destroy_executable(executable)
                executable = gpu.instantiate(capture())
            sizes_kb.append(rss_kb())
        # What is kept of the last launches varies by 20 MB after 1.3 million; a leak raises both ends.
        early, late = sizes_kb[60:130], sizes_kb[130:]
        print(min(max(late) - max(early), min(late) - min(early)), file=sys.stderr)
        finish(session)
        """
    )
    assert report.kernels == {"replay/<captured_at>/model/capture/a": 2_300_000}
    assert int(talk.splitlines()[0]) < 16_000  # 16 B a replay
