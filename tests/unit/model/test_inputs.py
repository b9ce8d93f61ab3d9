"""Which operators made the inputs of operators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bragg.formats import bragg
from bragg.model import InputTable, Profile
from bragg.model.merge import merge
from bragg.model.regroup import fold_specializations, regroup
from tests.support.profiles import profile_from_text

Edge = tuple[str, int, str, int, int]


@pytest.fixture
def profile() -> Profile:
    """`mm` got its second input five times from `relu`, and its first one from the second output of `split`."""
    found = profile_from_text(
        "root\n  f host=9us\n    split host=1us #operator\n    relu[2 f32] host=2us #operator"
        "\n    relu[3 f32] host=2us #operator\n    mm host=3us #operator"
    )
    node = {found.tree.label(node): node for node in range(len(found.tree))}
    inputs = InputTable(
        node=[node["mm"]] * 3,
        input=[0, 1, 1],
        producer=[node["split"], node["relu[2 f32]"], node["relu[3 f32]"]],
        output=[1, 0, 0],
        count=[1, 2, 3],
    )
    return replace(found, inputs=inputs)


def edges(profile: Profile) -> set[Edge]:
    profile.check()
    label, inputs = profile.tree.label, profile.inputs
    columns = (getattr(inputs, name).tolist() for name in inputs.columns())
    return {(label(node), i, label(producer), o, n) for node, i, producer, o, n in zip(*columns, strict=True)}


def test_shapes_of_an_operator_as_one_are_one_producer(profile: Profile) -> None:
    assert edges(fold_specializations(profile)) == {("mm", 0, "split", 1, 1), ("mm", 1, "relu", 0, 5)}


def test_inputs_of_operators_that_are_gone_are_gone(profile: Profile) -> None:
    tree = profile.tree
    is_relu, is_split = (
        np.array([tree.label(node).startswith(name) for node in range(len(tree))]) for name in ("relu", "split")
    )
    assert edges(regroup(tree, dropped=is_relu).apply(profile)) == {("mm", 0, "split", 1, 1)}
    folded = regroup(tree, folded=is_split).apply(profile)
    assert {producer for _, _, producer, _, _ in edges(folded)} == {"relu[2 f32]", "relu[3 f32]"}


def test_merged_profiles_add_up(profile: Profile) -> None:
    assert ("mm", 1, "relu[3 f32]", 0, 6) in edges(merge([profile, profile]))
    assert edges(merge([profile_from_text("root\n  other host=1us"), profile])) == edges(profile)


def test_files_keep_them(profile: Profile, tmp_path: Path) -> None:
    bragg.write(profile, tmp_path / "a.bragg")
    assert edges(bragg.read(tmp_path / "a.bragg")) == edges(profile)


def test_an_operator_that_does_not_exist_breaks_the_law(profile: Profile) -> None:
    broken = replace(profile, inputs=profile.inputs.replace(producer=[1, 1, len(profile.tree)]))
    with pytest.raises(ValueError, match="every producer of InputTable exists"):
        broken.check()


def test_data_frames_have_names_and_paths(profile: Profile) -> None:
    pytest.importorskip("pandas")
    row = profile.to_pandas("inputs").iloc[0].to_dict()
    assert (row["node_path"], row["producer_name"], row["output"], row["count"]) == ("f > mm", "split", 1, 1)
