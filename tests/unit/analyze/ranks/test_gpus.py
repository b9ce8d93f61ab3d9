"""Processes with several GPUs each, as of JAX: groups are of devices, and a process is as late as its last GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.straggler_jobs import JobPlan, profiles_of
from bragg.analyze.ranks.answer import RanksAnswer, compare_ranks
from bragg.analyze.ranks.collectives import collective_slices, kernel_calls
from bragg.analyze.ranks.summarize import summarize
from bragg.cli.rank_files import read_ranks
from bragg.formats.bragg import write
from bragg.model import Profile, TrackKind
from bragg.model.merge import merge
from tests.support.profiles import profile_from_text

SLOW = JobPlan(n_ranks=8, n_steps=20, skew_ms=0.0, drift_ppm=0.0, gpu=lambda rank, _: 1.3 if rank == 3 else 1.0)


def process_of(profiles: Sequence[Profile], rank: int | None, group: str) -> Profile:
    """One process that has the GPUs of several and the host of the first one, whose collectives JAX would tell."""
    merged = merge(profiles)
    tracks = merged.tracks
    first = tracks.rank.min()
    is_kept = (tracks.kind == TrackKind.GPU_STREAM) | (tracks.rank == first)
    slices = merged.slices.take(is_kept[merged.slices.track])
    slices = slices.replace(correlation=np.zeros(len(slices), np.int64))  # each process counted from 1
    tracks = tracks.replace(
        device=np.where(tracks.device >= 0, tracks.rank - first, -1).astype(np.int32),
        process=np.full(len(tracks), 7, np.int32),
        rank=np.full(len(tracks), -1 if rank is None else rank, np.int32),
    )
    names = [name.replace("group 0 of", f"group {group} of") for name in merged.tree.frames.name]
    names = ["AllReduceKernelImpl<float>" if name.startswith("ncclDevKernel") else name for name in names]
    meta = {name: value for name, value in profiles[0].meta.items() if name != "rank"}
    if rank is not None:
        meta["rank"] = rank
    tree = replace(merged.tree, frames=merged.tree.frames.replace(name=names))
    return replace(merged, meta=meta, tracks=tracks, slices=slices, tree=tree)


def named(answer: RanksAnswer) -> list[tuple[int, str, str]]:
    return [(answer.ranks[late.index].rank, late.when.value, why.reason.value) for late, why in answer.stragglers]


@pytest.fixture(scope="module")
def gpus() -> list[Profile]:
    return profiles_of(SLOW)


def test_the_gpus_of_one_process_are_compared_as_ranks(gpus: list[Profile], tmp_path: Path) -> None:
    path = tmp_path / "train.bragg"
    write(process_of(gpus, None, "devices 0-7"), path)
    read = read_ranks([path])
    assert read.problems == ["one process: each of its GPUs is compared as a rank"]
    answer = compare_ranks(read.summaries, read.problems, read.sums)
    assert [rank.rank for rank in answer.ranks] == list(range(8))
    assert named(answer) == [(3, "always", "slow GPU")]
    assert {group for rank in answer.ranks for group in rank.calls.group} == {"devices 0-7"}
    assert answer.n_collectives == 80


def test_a_process_is_as_late_as_the_last_of_its_gpus(gpus: list[Profile]) -> None:
    ranks = [process_of(gpus[first : first + 2], first // 2, "devices 0-7") for first in range(0, 8, 2)]
    summaries = [summarize(rank) for rank in ranks]
    assert [len(each.collectives()) for each in summaries] == [80] * 4
    assert named(compare_ranks(summaries)) == [(1, "always", "slow GPU")]
    linked = collective_slices(ranks[0])
    assert np.bincount(linked.sequence).tolist() == [2] * 80  # on either GPU


def test_gpus_of_a_process_that_are_in_different_groups_are_told_apart() -> None:
    profile = profile_from_text(
        """
root
  collective all-reduce[4 f32, group devices 0,2 on GPU 0 or devices 1,3 on GPU 1 of 2] #operator
    AllReduceKernelImpl 12us @0
    AllReduceKernelImpl 12us @1
    sort_kernel 5us @0
  all_reduce_by_hand 7us @0
  psum_invariant.7 #operator
    collective all-reduce[8 f32, group devices 0-3 of 4] #operator
      psum_invariant_7 3us @0
      memset_7 1us @0
"""
    )
    found = kernel_calls(profile, np.zeros(len(profile.tree), np.int64))
    assert found.calls.group == ["devices 0,2", "devices 1,3", "devices 0-3"]
    assert found.calls.size_bytes.tolist() == [16, 16, 32]
    assert found.calls.operation == ["all-reduce"] * 3
    assert profile.own("gpu_time")[found.is_communication].tolist() == [12_000, 12_000, 3_000]


def test_a_damaged_file_alone_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "rank.bragg"
    path.write_bytes(b"PK\x03\x04 no archive")
    read = read_ranks([path])
    assert read.summaries == []
    assert len(read.problems) == 1
