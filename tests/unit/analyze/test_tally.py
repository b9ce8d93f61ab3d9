from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.tally import Section, Tally, TallyRow, tally_of
from bragg.model import DurationTable, Metric, MetricKind, Profile
from bragg.model.durations import buckets_of
from bragg.model.metric import Combine
from bragg.views.job.tally_text import tally_lines
from bragg.views.text.style import PLAIN
from tests.support.jobs import rank_profile
from tests.support.profiles import profile_from_text

RUN = """
root host=1ms
  step host=4ms hostx2
    cudaLaunchKernel #gpu_api host=1ms hostx4
      k 12us x3
      other 2us
    cudaLaunchKernel #gpu_api host=3ms hostx1
      k 4us x1
    copy HtoD #memory 2us x2 bytes=64
"""


def section(tally: Tally, title: str) -> Section:
    return next(section for section in tally.sections if section.title == title)


def row(tally: Tally, title: str, name: str) -> TallyRow:
    return next(row for row in section(tally, title).rows if row.name == name)


def with_launches(profile: Profile, name: str, *durations_ns: int) -> Profile:
    """A profile that knows the single launches of a kernel."""
    frame = profile.tree.frames.name.index(name)
    launches = np.array(durations_ns)
    n = len(launches)
    durations = DurationTable(
        np.full(n, frame, np.int32), buckets_of(launches), np.ones(n, np.int64), np.zeros(n, np.int64)
    )
    nodes = profile.tree.frame == frame
    extremes = {
        name: Metric(name, "ns", MetricKind.PROPERTY, np.where(nodes, value, np.nan), combine)
        for name, value, combine in (
            ("gpu_time_min", float(launches.min()), Combine.MIN),
            ("gpu_time_max", float(launches.max()), Combine.MAX),
        )
    }
    return replace(profile, durations=durations.combined(), metrics={**profile.metrics, **extremes})


def test_each_kind_has_a_section_with_totals_of_all_call_paths() -> None:
    tally = tally_of([profile_from_text(RUN)])
    assert [section.title for section in tally.sections] == ["GPU API", "scopes", "device", "memory traffic"]
    launch = row(tally, "GPU API", "cudaLaunchKernel")
    assert (launch.total, launch.share, launch.calls, launch.average) == (4_000_000, 1.0, 5, 800_000)
    kernel = row(tally, "device", "k")
    assert (kernel.total, kernel.share, kernel.calls, kernel.average) == (16_000, 0.8, 4, 4_000)
    copied = row(tally, "memory traffic", "copy HtoD")
    assert (section(tally, "memory traffic").unit, copied.total, copied.calls, copied.average) == ("B", 64, 2, 32)


def test_what_is_not_known_is_none() -> None:
    kernel = row(tally_of([profile_from_text(RUN)]), "device", "k")
    assert (kernel.least, kernel.most, kernel.quantiles, kernel.imbalance, kernel.worst_rank) == (None,) * 5
    assert row(tally_of([profile_from_text("root\n  s host=1ms")]), "scopes", "s").average is None


def test_time_of_a_scope_has_what_it_called_once() -> None:
    nested = "root host=1ms\n  s host=1ms hostx1\n    t hostx1\n      s host=2ms hostx1\n  s2 host=1ms hostx1"
    found = row(tally_of([profile_from_text(nested)]), "scopes", "s")
    assert (found.total, found.calls, found.share) == (3_000_000, 2, 3 / 5)


def test_extremes_and_percentiles_are_those_of_single_launches() -> None:
    profile = with_launches(profile_from_text("root\n  k 106us x4"), "k", 1_000, 2_000, 3_000, 100_000)
    kernel = row(tally_of([profile]), "device", "k")
    assert (kernel.least, kernel.most) == (1_000, 100_000)
    assert kernel.quantiles == (pytest.approx(2_000, rel=0.032), 100_000, 100_000)


def test_percentiles_need_all_launches() -> None:
    profile = with_launches(profile_from_text("root\n  k 106us x5"), "k", 1_000, 2_000, 3_000, 100_000)
    assert row(tally_of([profile]), "device", "k").quantiles is None


def test_ranks_are_added_up_and_compared() -> None:
    ranks = [rank_profile(f"root\n  k {time}us", number) for number, time in ((3, 10), (5, 40), (9, 10))]
    tally = tally_of(ranks, [3, 5, 9])
    kernel = row(tally, "device", "k")
    assert (kernel.total, kernel.calls, kernel.imbalance, kernel.worst_rank) == (60_000, 3, 1.0, 5)
    assert (tally.n_hosts, tally.n_processes, tally.n_threads) == (1, 3, None)


def test_rank_that_never_ran_it_counts_as_zero() -> None:
    ranks = [rank_profile("root\n  k 10us", 0), rank_profile("root\n  other 10us", 1)]
    assert row(tally_of(ranks, [0, 1]), "device", "k").imbalance == 1.0


def test_missing_calls_of_the_api_are_noted_where_a_gpu_worked() -> None:
    assert "--gpu-api" in tally_of([profile_from_text("root\n  k 1us")]).notes[0]
    assert tally_of([profile_from_text("root\n  s host=1ms hostx1")]).notes == ()


def test_gpus_are_counted_by_uuid_where_ranks_tell_it() -> None:
    def job(*uuids: str) -> int:
        text = "root\n  k 1us @0"
        ranks = [rank_profile(text, number, job={"gpus": [uuid]}) for number, uuid in enumerate(uuids)]
        return tally_of(ranks, range(len(ranks))).n_devices

    assert (job("GPU-a", "GPU-b"), job("GPU-a", "GPU-a")) == (2, 1)


def with_nccl(profile: Profile, communicator: str, **calls: int) -> Profile:
    told = [{"function": name, "dtype": "f32", "count": 8, "calls": n} for name, n in calls.items()]
    return replace(profile, meta={"nccl": {"communicators": [{"group": communicator, "n_ranks": 2, "calls": told}]}})


def test_ranks_that_made_fewer_collectives_than_others_are_named() -> None:
    plain = profile_from_text(RUN)
    ranks = [
        with_nccl(plain, "a", AllReduce=13, Broadcast=2),
        with_nccl(plain, "a", AllReduce=12, Broadcast=2),
        with_nccl(plain, "b", AllReduce=9),
    ]
    tally = tally_of(ranks, [0, 1, 2])
    assert [note for note in tally.notes if "NCCL" in note] == [
        "rank 1 made 12 all-reduce calls of NCCL in group a, rank 0 13"
    ]
    assert row(tally, "NCCL", "all-reduce[8 f32, group a of 2]").calls == 25
    assert row(tally, "NCCL", "all-reduce[8 f32, group a of 2]").average is None


def test_calls_before_the_recording_began_are_none_that_a_rank_missed() -> None:
    def rank(*calls: tuple[int, int, int]) -> Profile:
        told = [
            {"function": "AllReduce", "dtype": "f32", "count": size, "calls": n, "last_sequence": last}
            for size, n, last in calls
        ]
        communicator = {"group": "a", "n_ranks": 2, "calls": told}
        return replace(profile_from_text(RUN), meta={"nccl": {"communicators": [communicator]}})

    def notes(*ranks: Profile) -> list[str]:
        return [note for note in tally_of(ranks, range(len(ranks))).notes if "NCCL" in note]

    assert notes(rank((8, 13, 12)), rank((8, 5, 10), (16, 2, 12))) == []
    assert notes(rank((8, 13, 12)), rank((8, 5, 10))) == [
        "rank 1 made 11 all-reduce calls of NCCL in group a, rank 0 13"
    ]


def test_the_bus_bandwidth_is_that_of_the_call_that_waited_least() -> None:
    def rank(*least_ns: int) -> Profile:
        told = [
            {"function": name, "dtype": "f32", "count": 1000, "calls": 2, "timed": 2, "gpu_ns": 9000, "least_ns": least}
            for name, least in zip(("AllReduce", "AllGather", "Send"), least_ns, strict=True)
        ]
        communicator = {"group": "a", "n_ranks": 4, "calls": [{**call, "peer": 1} for call in told]}
        return replace(profile_from_text(RUN), meta={"nccl": {"communicators": [communicator]}})

    tally = tally_of([rank(4000, 2000, 500), rank(3000, 3000, 500)], [0, 1])
    rates = {each.name.partition("[")[0]: each.bus_bytes_per_s for each in section(tally, "NCCL").rows}
    assert rates == {"all-reduce": 4000 * 1.5 / 3e-6, "all-gather": 4000 * 3 / 2e-6, "send": None}
    lines = tally_lines(tally, PLAIN, None)
    assert "bus GB/s" in lines[lines.index("NCCL") + 1]
    assert ["2" in line.split() for line in lines if "all-reduce" in line] == [True]  # GB/s
