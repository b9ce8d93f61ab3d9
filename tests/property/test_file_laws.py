"""Laws of files: what is written is read back, and what is left of a broken file is read or refused, never wrong."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.errors import BadFile, BraggError, NothingRecorded
from bragg.formats import bragg, capture
from bragg.formats.timelines.columns import pack, unpack
from bragg.formats.timelines.lanes import lanes
from bragg.model import Profile, SliceTable
from tests.support.captures import small_capture
from tests.support.random_profiles import content, profiles

# Values around the limits of each size that a column can take.
numbers = st.one_of(*(st.integers(max(0, 2**bits - 2), 2**bits + 2) for bits in (0, 8, 16, 32, 60)))


@given(profiles())
def test_a_profile_is_read_back_as_it_was_written(profile: Profile) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.bragg"
        bragg.write(profile, path)
        found = bragg.read(path)
    assert found.meta == profile.meta
    assert content(found) == content(profile)
    assert found.tree.parent.tolist() == profile.tree.parent.tolist()


@given(st.lists(st.tuples(numbers, numbers, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), numbers)))
def test_columns_of_slices_are_unpacked_as_they_were_packed(rows: list[tuple[int, ...]]) -> None:
    columns: Any = np.array(rows, np.int64).reshape(-1, 5).T
    slices = SliceTable(*columns)
    found = unpack(pack(slices))
    for name in slices.columns():
        assert getattr(found, name).tolist() == getattr(slices, name).tolist()


@given(profiles())
def test_slices_of_a_lane_nest_and_every_slice_has_a_lane(profile: Profile) -> None:
    found = list(lanes(profile))
    assert sorted(row for lane in found for row in lane.rows.tolist()) == list(range(len(profile.slices)))
    for lane in found:
        spans = profile.slices.take(lane.rows)
        assert (spans.track == lane.track).all()
        open_ends: list[int] = []
        for start, duration in zip(spans.start_ns.tolist(), spans.duration_ns.tolist(), strict=True):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or start + duration <= open_ends[-1]
            open_ends.append(start + duration)


def read_part(path: Path, content: bytes) -> Profile | BraggError:
    path.write_bytes(content)
    try:
        profile = capture.read(path)
    except (BadFile, NothingRecorded) as error:
        return error
    profile.check()
    return profile


def test_a_capture_that_was_cut_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    whole = small_capture().content()
    path = tmp_path / "run.part"
    slices_before = 0
    for size in range(len(whole) + 1):
        found = read_part(path, whole[:size])
        if isinstance(found, Profile):
            assert len(found.slices) >= slices_before
            slices_before = len(found.slices)
            assert found.meta["capture"]["complete"] == (size == len(whole))
        else:
            assert slices_before == 0
            assert isinstance(found, BadFile if size < 16 else NothingRecorded)
    assert slices_before == 5


def test_a_capture_cut_between_chunks_has_lost_nothing(tmp_path: Path) -> None:
    builder = small_capture()
    while builder.chunks:
        builder.chunks.pop()
        found = read_part(tmp_path / "run.part", builder.content())
        if isinstance(found, Profile):
            assert found.meta["capture"] == {"complete": False, "damaged_chunks": 0, "bytes_lost": 0}


@pytest.mark.parametrize("missing", range(len(small_capture().chunks)))
def test_a_capture_without_one_of_its_chunks_is_read(missing: int, tmp_path: Path) -> None:
    builder = small_capture()
    builder.chunks[missing] = b"\xff" * len(builder.chunks[missing])
    found = read_part(tmp_path / "run.part", builder.content())
    assert isinstance(found, Profile)
    assert found.meta["capture"]["damaged_chunks"] == 1
    assert found.total("gpu_time") in (200, 300)
