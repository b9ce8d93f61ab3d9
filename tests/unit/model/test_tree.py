from __future__ import annotations

import numpy as np
import pytest

from bragg.model import CallTree, FrameKind, FrameTable
from tests.support.profiles import profile_from_text

FRAMES = FrameTable(np.array([FrameKind.ROOT]), ["root"], [""], np.array([0]), np.array([-1]))


def tree_of(parent: list[int], frame: list[int] | None = None) -> CallTree:
    return CallTree(np.array(parent), np.array(frame or [0] * len(parent)), FRAMES)


@pytest.mark.parametrize(
    ("parent", "frame", "law"),
    [
        ([], None, "has a root"),
        ([0], None, "node 0 is the root"),
        ([-1, -1], None, "there is one root"),
        ([-1, 2, 0], None, "parents precede children"),
        ([-1, 1], None, "parents precede children"),
        ([-1, 0], [0, 1], "every node's frame exists"),
        ([-1, 0], [0, 0, 0], "every node has a parent and a frame"),
    ],
)
def test_check_names_the_law_that_is_broken(parent: list[int], frame: list[int] | None, law: str) -> None:
    with pytest.raises(ValueError, match=law):
        tree_of(parent, frame).check()


def test_inclusive_sums_add_up_level_by_level() -> None:
    profile = profile_from_text(
        """
        root
          forward
            matmul 12us x3
            relu 3us
          backward
            matmul 20us""".replace("\n        ", "\n")
    )
    assert profile.inclusive("gpu_time").tolist() == [35_000, 15_000, 12_000, 3_000, 20_000, 20_000]
    assert profile.own("gpu_time").tolist() == [0, 0, 12_000, 3_000, 0, 20_000]


def test_children_path_and_depth_of_a_node() -> None:
    tree = tree_of([-1, 0, 1, 0, 1])
    assert tree.children(1).tolist() == [2, 4]
    assert tree.children(2).tolist() == []
    assert tree.path(4) == [0, 1, 4]
    assert tree.depth.tolist() == [0, 1, 2, 1, 2]


def test_a_chain_of_100_000_nodes_has_its_depth() -> None:
    tree = tree_of(list(range(-1, 99_999)))
    assert tree.depth[-1] == 99_999


def test_code_is_labelled_with_its_place_and_everything_else_by_name() -> None:
    tree = profile_from_text("root\n  train.py:12@step\n    matmul 1us").tree
    assert [tree.label(node) for node in range(3)] == ["root", "train.py:12@step", "matmul"]
