"""CUDA graphs on a real GPU: kernels are where they were captured, below the launch that ran them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from bragg.model import Profile
from tests.gpu.conftest import Recorded, kernel_nodes, names_above

pytestmark = pytest.mark.cuda
Run = Callable[..., Recorded]
Python = Callable[..., list[str]]

SCOPES = ("--context", "shadow", "--framework", "off")


def counts(profile: Profile) -> dict[str, int]:
    """Launches of kernels by the names above them, below the root."""
    total: Counter[str] = Counter()
    for node in kernel_nodes(profile):
        total["/".join(names_above(profile, node)[1:-1])] += int(profile.own("gpu_count")[node])
    return dict(total)


def values(profile: Profile, metric: str) -> dict[str, float]:
    """A metric's own values by path of names, below the root."""
    own = profile.own(metric)
    nodes = np.flatnonzero(np.isfinite(own) & (own != 0))
    return {"/".join(names_above(profile, int(node))[1:]): float(own[node]) for node in nodes}


@pytest.fixture
def paths(run: Run) -> Profile:
    return run("graphs_paths.py", *SCOPES).profile


def test_kernels_are_below_the_launch_and_where_they_were_captured(paths: Profile) -> None:
    replayed = {path: count for path, count in counts(paths).items() if path.startswith(("replay", "again"))}
    layer = {scope: replayed[f"{scope}/<captured_at>/model/layer 1"] for scope in ("replay", "again")}
    assert layer == {"replay": 20 * 2, "again": 5 * 2}  # a product and its ReLU
    assert {path.split("/")[1] for path in replayed} == {"<captured_at>"}
    assert paths.meta["statistics"]["unknown_captures"] == paths.meta["statistics"]["unattributed_records"] == 0


def test_metrics_of_a_capture_count_once_a_replay(paths: Profile) -> None:
    assert values(paths, "flops") == {
        f"{scope}/<captured_at>/model/layer {layer}": 1000 * replays
        for scope, replays in (("replay", 20), ("again", 5))
        for layer in range(2)
    }
    assert values(paths, "loss")["again/<captured_at>/model/layer 0"] == 1.25


def test_an_update_changes_the_paths_of_one_instantiation(run: Run) -> None:
    profile = run("graphs_update.py", *SCOPES).profile
    below = {path: count for path, count in counts(profile).items() if "<captured_at>" in path}
    assert below == {
        "before/<captured_at>/first": 2 * (2 + 3),
        "after second/<captured_at>/second": 2 * 4,
        "after second/<captured_at>/first": 2 * 5,
        "after third/<captured_at>/third": 2 * 4,  # the driver tells of no node: the graph is equal
        "after third/<captured_at>/first": 2 * 5,
    }


def test_graphs_within_graphs_and_bodies_of_conditions_keep_their_paths(run: Run) -> None:
    profile = run("graphs_nested.py", *SCOPES).profile
    assert counts(profile)["nested/<captured_at>/inner"] == 10 * 2 * 2
    assert counts(profile)["conditional/<captured_at>/body"] == 10
    tree, copies = profile.tree, profile.own("gpu_count")
    nodes = [node for node in range(len(copies)) if tree.label(node) == "copy DtoD" and copies[node] > 0]
    assert {"/".join(names_above(profile, node)[1:-1]) for node in nodes} >= {"nested/<captured_at>/inner"}
    assert profile.meta["statistics"]["unknown_captures"] == 0


def test_a_graph_captured_before_recording_is_labelled(python: Python) -> None:
    report = json.loads(python("graphs_late.py", "node")[-1])
    assert report["paths"] == {
        "late first/<captured_at>/late": 10,
        "early/<captured before recording>": 20,
        "late again/<captured_at>/late": 30,
    }


def test_a_graph_captured_before_whole_graphs_were_recorded_does_not_crash(python: Python) -> None:
    report = json.loads(python("graphs_late.py", "graph")[-1])
    assert report["paths"] == {
        "late first": 10,
        "early/<captured before recording>": 20,
        "late again/<captured_at>/late": 30,
    }
    assert report["graphs"] == "node"


def test_whole_graphs_are_one_record_a_launch(run: Run) -> None:
    profile = run("graphs_whole.py", *SCOPES, "--graphs", "graph").profile
    (node,) = kernel_nodes(profile, under="replay")
    assert re.fullmatch(r"<cuda graph \d+>", profile.tree.label(int(node)))
    assert profile.own("gpu_count")[node] == 100
    assert counts(profile)["eager"] == 1
    assert values(profile, "work") == {"capture": 1, "replay/<captured_at>/capture/inside": 200}


def test_a_hundred_thousand_replays_need_no_more_memory(run: Run) -> None:
    done = run("graphs_memory.py", *SCOPES)
    assert counts(done.profile)["replay/<captured_at>/capture"] == 200_000
    assert int(done.stdout.splitlines()[0]) < 32_000
