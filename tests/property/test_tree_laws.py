"""Laws of call trees and of what transforms do to them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bragg.model import CallTree, Profile
from bragg.model.host_time import own_host_time
from bragg.model.regroup import regroup
from bragg.model.transform import flat, group_by_name, has_data, with_ancestors, with_descendants
from tests.support.random_profiles import call_paths, content, profiles, trees

masks = st.integers(0, 2**24 - 1)


def mask_of(bits: int, tree: CallTree) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([bool(bits >> node & 1) for node in range(len(tree))])


def totals(profile: Profile) -> dict[str, int]:
    return {name: int(metric.own.sum()) for name, metric in profile.metrics.items() if name != "gpu_time_min"}


@given(profiles())
def test_inclusive_is_own_plus_that_of_the_children(profile: Profile) -> None:
    for name in {"gpu_time"} & set(profile.metrics):
        own, total, inclusive = profile.own(name), profile.total(name), profile.inclusive(name)
        assert total == inclusive[0]
        for node in range(len(profile.tree)):
            assert inclusive[node] == own[node] + inclusive[profile.tree.children(node)].sum()


@given(trees())
def test_depth_is_the_length_of_the_path(tree: CallTree) -> None:
    assert tree.depth.tolist() == [len(tree.path(node)) - 1 for node in range(len(tree))]
    assert sorted(np.concatenate(tree.levels).tolist()) == list(range(len(tree)))


@given(trees())
def test_children_and_parent_agree(tree: CallTree) -> None:
    found = [(node, child) for node in range(len(tree)) for child in tree.children(node).tolist()]
    assert sorted(child for _, child in found) == list(range(1, len(tree)))
    assert all(tree.parent[child] == node for node, child in found)


@given(profiles())
def test_without_subtrees_that_hold_no_data_nothing_measured_changes_and_every_leaf_has_data(profile: Profile) -> None:
    empty = ~with_ancestors(profile.tree, has_data(profile))
    pruned = regroup(profile.tree, dropped=empty).apply(profile)
    pruned.check()
    assert content(pruned) == content(profile)
    paths = {path for values in content(pruned).values() for path in values}
    paths |= {slice_[2] for slice_ in content(pruned)["slices"]}
    leaves = [node for node in range(1, len(pruned.tree)) if not len(pruned.tree.children(node))]
    assert {call_paths(pruned)[leaf] for leaf in leaves} <= paths


@given(profiles(), masks)
def test_folding_keeps_totals_and_hides_the_nodes(profile: Profile, bits: int) -> None:
    hidden = mask_of(bits, profile.tree)
    folded = regroup(profile.tree, folded=hidden).apply(profile)
    folded.check()
    assert totals(folded) == totals(profile)
    assert len(folded.slices) == len(profile.slices)
    kept = {
        tuple(frame for frame, above in zip(path, profile.tree.path(node)[1:], strict=True) if not hidden[above])
        for node, path in enumerate(call_paths(profile))
    }
    assert set(call_paths(folded)) == kept


@given(profiles(), masks, masks)
def test_regrouping_keeps_parents_before_children_and_merges_equal_siblings(
    profile: Profile, folded: int, dropped: int
) -> None:
    tree = profile.tree
    result = regroup(tree, folded=mask_of(folded, tree), dropped=mask_of(dropped, tree)).apply(profile)
    result.check()
    paths = call_paths(result)
    assert len(set(paths)) == len(paths)


@given(profiles())
def test_group_by_name_keeps_totals_and_leaves_one_sibling_of_each_name(profile: Profile) -> None:
    grouped = group_by_name(profile)
    grouped.check()
    assert totals(grouped) == totals(profile)
    assert grouped.kernels.count.sum() == profile.kernels.count.sum()
    names = [tuple((frame[0], frame[1]) for frame in path) for path in call_paths(grouped)]
    assert len(set(names)) == len(names)


@given(profiles())
def test_flat_rows_add_up_to_the_totals(profile: Profile) -> None:
    rows = flat(profile)
    keys = list(zip(rows.frames.kind.tolist(), rows.frames.name, strict=True))
    assert len(set(keys)) == len(keys)
    for name, total in totals(profile).items():
        assert rows.metrics[name].own.sum() == total


@given(profiles(), masks)
def test_what_is_dropped_and_what_is_kept_share_the_data_between_them(profile: Profile, bits: int) -> None:
    tree = profile.tree
    wanted = with_descendants(tree, mask_of(bits & ~1, tree))
    inside = regroup(tree, dropped=~with_ancestors(tree, wanted), silenced=~wanted).apply(profile)
    outside = regroup(tree, dropped=wanted).apply(profile)
    inside.check()
    outside.check()
    assert {name: total + totals(outside)[name] for name, total in totals(inside).items()} == totals(profile)
    assert len(inside.slices) + len(outside.slices) == len(profile.slices)


@given(trees(), st.data())
def test_own_host_time_is_never_negative_and_measured_nodes_have_what_was_measured(
    tree: CallTree, data: st.DataObject
) -> None:
    numbers = st.lists(st.integers(0, 100), min_size=len(tree), max_size=len(tree))
    measured, sampled = np.array(data.draw(numbers)), np.array(data.draw(numbers))
    is_measured = mask_of(data.draw(masks), tree)
    own = own_host_time(tree, measured, is_measured, sampled)
    inclusive = tree.sum_up(own)
    assert (own >= 0).all()
    below = inclusive - own
    expected = np.maximum(measured, below)
    assert (inclusive[is_measured] == expected[is_measured]).all()
