from __future__ import annotations

import numpy as np

from bragg.model import FrameKind, Profile
from bragg.model.transform import flat, group_by_name, with_ancestors, with_descendants
from tests.support.profiles import profile_from_text, tree_to_text

TEXT = """root
  forward
    train.py:3@step
      matmul 12us x3
      relu 1us
  backward
    matmul 20us x2
  unused"""


def labels(profile: Profile, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[str]:
    return [profile.tree.label(node) for node in np.flatnonzero(mask)]


def test_nodes_above_and_below_the_marked_ones_are_marked() -> None:
    profile = profile_from_text(TEXT)
    is_step = profile.tree.kind == FrameKind.PYTHON
    assert labels(profile, with_ancestors(profile.tree, is_step)) == ["root", "forward", "train.py:3@step"]
    assert labels(profile, with_descendants(profile.tree, is_step)) == ["train.py:3@step", "matmul", "relu"]


def test_group_by_name_joins_lines_of_one_function() -> None:
    grouped = group_by_name(profile_from_text("root\n  a.py:3@step\n    k 1us\n  a.py:9@step\n    k 2us"))
    grouped.check()
    assert tree_to_text(grouped) == "root\n  a.py:3@step\n    k 3us x2"


def test_flat_adds_up_over_all_call_paths() -> None:
    rows = flat(profile_from_text(TEXT))
    row = rows.frames.name.index("matmul")
    assert rows.metrics["gpu_time"].own[row] == 32_000
    assert rows.metrics["gpu_count"].own[row] == 5
