from __future__ import annotations

import numpy as np
import pytest

from bragg.model import CallTree, FrameKind, FrameTable, Profile
from bragg.model.regroup import regroup
from bragg.model.table import BoolArray
from tests.support.profiles import profile_from_text, tree_to_text

TEXT = """root
  forward
    train.py:3@step
      matmul 12us x3
      relu 1us
  backward
    matmul 20us x2"""


def labelled(profile: Profile, *labels: str) -> BoolArray:
    return np.array([profile.tree.label(node) in labels for node in range(len(profile.tree))])


def lines(profile: Profile) -> str:
    profile.check()
    return tree_to_text(profile)


def test_children_of_folded_nodes_belong_to_the_node_above() -> None:
    profile = profile_from_text(TEXT)
    folded = regroup(profile.tree, folded=profile.tree.kind == FrameKind.PYTHON).apply(profile)
    assert lines(folded) == TEXT.replace("    train.py:3@step\n      matmul", "    matmul").replace(
        "      relu", "    relu"
    )


def test_values_of_folded_nodes_belong_to_the_node_above() -> None:
    profile = profile_from_text(TEXT)
    folded = regroup(profile.tree, folded=labelled(profile, "relu")).apply(profile)
    assert lines(folded).splitlines()[2] == "    train.py:3@step 1us"
    assert folded.total("gpu_time") == 33_000


def test_equal_siblings_become_one() -> None:
    profile = profile_from_text("root\n  a\n    k 1us\n  b\n    k 2us")
    assert lines(regroup(profile.tree, folded=labelled(profile, "a", "b")).apply(profile)) == "root\n  k 3us x2"


def test_dropped_nodes_are_gone_with_all_below_and_their_frames() -> None:
    profile = profile_from_text(TEXT)
    rest = regroup(profile.tree, dropped=labelled(profile, "forward")).apply(profile)
    assert lines(rest) == "root\n  backward\n    matmul 20us x2"
    assert sorted(rest.tree.frames.name) == ["backward", "matmul", "root"]


def test_silenced_nodes_stay_without_their_own_data() -> None:
    profile = profile_from_text("root\n  scope host=9us\n    inner host=2us")
    silenced = regroup(profile.tree, silenced=labelled(profile, "scope")).apply(profile)
    assert lines(silenced) == "root\n  scope\n    inner host=2us"


def test_the_root_stays_where_all_else_is_dropped() -> None:
    profile = profile_from_text(TEXT)
    nothing = regroup(profile.tree, dropped=np.ones(len(profile.tree), np.bool_)).apply(profile)
    assert len(nothing.tree) == 1
    assert nothing.total("gpu_time") == 0


def test_wide_and_narrow_trees_are_numbered_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    parent = np.array([-1, *(int(random.integers(max(0, node - 20), node)) for node in range(1, 300))], np.int32)
    names = ["root", "a", "b", "c"]
    frames = FrameTable(
        kind=np.array([FrameKind.ROOT, *[FrameKind.PYTHON] * 3], np.uint8),
        name=names,
        file=[""] * 4,
        line=np.zeros(4, np.int32),
        device=np.full(4, -1, np.int32),
    )
    tree = CallTree(parent, np.array([0, *random.integers(1, 4, 299)], np.int32), frames)
    folded, dropped = random.random(300) < 0.4, random.random(300) < 0.02
    narrow = regroup(tree, folded=folded, dropped=dropped)
    monkeypatch.setattr("bragg.model.regroup._FEW", 0)
    wide = regroup(tree, folded=folded, dropped=dropped)
    assert 1 < len(narrow.tree) < 180
    for one, other in ((narrow.target, wide.target), (narrow.tree.parent, wide.tree.parent)):
        assert one.tolist() == other.tolist()
    assert narrow.tree.frame.tolist() == wide.tree.frame.tolist()
