from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from bragg.errors import UsageError
from bragg.model import FrameKind, Profile
from bragg.model.transform import flat, fold, group_by_name, prune, select, threshold
from tests.support.profiles import profile_from_text, tree_to_text

TEXT = dedent("""\
    root
      forward
        train.py:3@step
          matmul 12us x3
          relu 1us
      backward
        matmul 20us x2
      unused""")


def lines(profile: Profile) -> str:
    profile.check()
    return tree_to_text(profile)


def test_prune_removes_what_holds_no_data() -> None:
    assert lines(prune(profile_from_text(TEXT))) == TEXT.removesuffix("\n  unused")


def test_fold_gives_the_children_to_the_node_above() -> None:
    profile = profile_from_text(TEXT)
    folded = fold(profile, profile.tree.kind == FrameKind.PYTHON)
    assert lines(folded) == TEXT.replace("    train.py:3@step\n      matmul", "    matmul").replace(
        "      relu", "    relu"
    )


def test_fold_makes_equal_siblings_one() -> None:
    profile = profile_from_text("root\n  a\n    k 1us\n  b\n    k 2us")
    hidden = np.array([profile.tree.label(node) in "ab" for node in range(len(profile.tree))])
    assert lines(fold(profile, hidden)) == "root\n  k 3us x2"


def test_threshold_folds_small_nodes_into_their_parents() -> None:
    small = threshold(profile_from_text(TEXT), "gpu_time", 0.1)
    assert lines(small).splitlines()[2] == "    train.py:3@step 1us"
    assert small.total("gpu_time") == 33_000


def test_include_keeps_what_matches_with_the_path_to_it() -> None:
    assert lines(select(profile_from_text(TEXT), include="step$")) == dedent("""\
        root
          forward
            train.py:3@step
              matmul 12us x3
              relu 1us""")


def test_exclude_drops_what_matches_with_all_below() -> None:
    assert lines(select(profile_from_text(TEXT), exclude="forward|unused")) == dedent("""\
        root
          backward
            matmul 20us x2""")


def test_include_drops_the_own_time_of_the_path() -> None:
    profile = profile_from_text("root\n  scope host=9us\n    inner host=2us")
    assert select(profile, include="inner").total("host_time") == 2_000


def test_include_that_matches_nothing_leaves_the_empty_root() -> None:
    nothing = select(profile_from_text(TEXT), include="no such name")
    assert len(nothing.tree) == 1
    assert nothing.total("gpu_time") == 0


def test_a_malformed_expression_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"bad regular expression '\('"):
        select(profile_from_text(TEXT), include="(")


def test_group_by_name_joins_lines_of_one_function() -> None:
    profile = profile_from_text("root\n  a.py:3@step\n    k 1us\n  a.py:9@step\n    k 2us")
    assert lines(group_by_name(profile)) == "root\n  a.py:3@step\n    k 3us x2"


def test_flat_adds_up_over_all_call_paths() -> None:
    rows = flat(profile_from_text(TEXT))
    row = rows.frames.name.index("matmul")
    assert rows.metrics["gpu_time"].own[row] == 32_000
    assert rows.metrics["gpu_count"].own[row] == 5


def test_only_frames_that_are_used_remain() -> None:
    assert "unused" not in prune(profile_from_text(TEXT)).tree.frames.name
