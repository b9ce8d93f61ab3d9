"""Laws of merging profiles."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from bragg.model import Profile
from bragg.model.merge import merge
from tests.support.random_profiles import content, profiles


def without_order(profile: Profile) -> dict[str, Any]:
    meta = dict(profile.meta)
    recordings = sorted(map(repr, meta.pop("merged")))
    return {**content(profile), "meta": meta, "recordings": recordings, "n_tracks": len(profile.tracks)}


@given(profiles(), profiles(), profiles())
def test_merge_is_associative(one: Profile, two: Profile, three: Profile) -> None:
    left = merge([merge([one, two]), three])
    right = merge([one, merge([two, three])])
    left.check()
    right.check()
    assert without_order(left) == without_order(right)


@given(profiles(), profiles())
def test_merge_is_commutative_up_to_order(one: Profile, two: Profile) -> None:
    assert without_order(merge([one, two])) == without_order(merge([two, one]))


@given(profiles(), profiles())
def test_merge_adds_totals_and_keeps_every_slice_and_flow(one: Profile, two: Profile) -> None:
    both = merge([one, two])
    for name in set(one.metrics) & set(two.metrics) & {"gpu_time"}:
        assert both.total(name) == one.total(name) + two.total(name)
    assert len(both.slices) == len(one.slices) + len(two.slices)
    assert len(both.flows) == len(one.flows) + len(two.flows)


@given(profiles())
def test_a_profile_merged_alone_is_itself(profile: Profile) -> None:
    assert merge([profile]) is profile
