"""What bounds a program, where the timeline tells and where it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.alone import alone_ns
from bragg.analyze.causes.bounds import UNKNOWN, bounds_of
from bragg.analyze.causes.evidence import Evidence
from bragg.model import IdleTable, Profile, SliceTable, TrackKind, TrackTable
from bragg.views.text.bounds_text import bounds_sentence
from tests.support.profiles import profile_from_text
from tests.support.stepped import stepped

LATE = "host 0-4 aten::mm#operator > cuLaunchKernel#gpu_api ->1\ngpu 7-17 aten::mm#operator > gemm#kernel <-1"


def parts(profile: Profile) -> dict[str, float]:
    return {part.name: part.share for part in bounds_of(Evidence(profile)).parts}


def test_parts_are_those_of_the_timeline() -> None:
    # Of 100 us the kernel takes 10 and begins 3 after its launch; the launch takes 4; the rest is before it.
    found = parts(stepped(LATE, 100))
    assert sum(found.values()) == pytest.approx(1)
    assert found["matrix products and convolutions"] == pytest.approx(0.10, abs=0.01)
    assert found["between a launch and its start"] == pytest.approx(0.03, abs=0.01)
    assert bounds_of(Evidence(stepped(LATE, 100))).by == "the host"


def test_without_launches_nobody_is_blamed() -> None:
    profile = stepped(LATE, 100)
    slices = profile.slices.replace(correlation=np.zeros_like(profile.slices.correlation))
    bounds = bounds_of(Evidence(replace(profile, slices=slices)))
    assert bounds.by == ""
    assert bounds.parts[0].name == UNKNOWN
    assert bounds_sentence(bounds).endswith("the GPU works 10 %; why it waits is not known.")


def test_a_program_that_hardly_used_the_gpu_or_failed_there_is_not_judged() -> None:
    few = bounds_of(Evidence(stepped(LATE, 100, n_steps=2)))
    assert few.busy is None
    assert bounds_sentence(few) == (
        "What bounds the program is not known: the GPU worked 20.0 us, in too few kernels and copies."
    )
    enough = stepped(LATE, 100)
    assert bounds_of(Evidence(enough)).busy == pytest.approx(0.10, abs=0.01)
    failed = replace(enough, meta={**enough.meta, "kernel_error": "an illegal memory access was encountered"})
    found = bounds_of(Evidence(failed))
    assert found.busy is None
    assert bounds_sentence(found) == (
        "What bounds the program is not known: the GPU worked 190 us, and a kernel failed."
    )
    merged = replace(enough, meta={**enough.meta, "merged": 2})
    assert bounds_sentence(bounds_of(Evidence(merged))) == (
        "What bounds the program is not known: the GPU worked 200 us, at times that are not known."
    )
    assert bounds_sentence(replace(found, gpu_ns=0.0)) == "What bounds the program is not known: no GPU worked."


def test_input_that_is_waited_for_is_named() -> None:
    loading = "host 0-80 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
    launched = LATE.replace("0-4", "80-84").replace("7-17", "87-97")
    assert bounds_of(Evidence(stepped(loading + launched, 100))).by == "input"


def test_what_the_recorder_added_up_stands_for_the_timeline() -> None:
    loading = "host 0-80 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
    profile = stepped(loading + LATE.replace("0-4", "80-84").replace("7-17", "87-97"), 100)
    whole = Evidence(profile)
    assert whole.steady is not None
    assert whole.idle_ns is not None
    nodes = np.flatnonzero(whole.idle_ns)
    n = len(nodes)
    folded = IdleTable(
        *(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32), nodes.astype(np.int32)),
        *(np.full(n, whole.steady.begins_ns), np.full(n, whole.steady.duration_ns), np.ones(n, np.int64)),
        *(whole.idle_ns[nodes].astype(np.int64), np.ones(n, np.int64)),
    )
    gpu_work = {"gpu_first_ns": whole.steady.begins_ns, "gpu_last_ns": whole.steady.ends_ns}
    meta = {**profile.meta, **gpu_work, "gpu_busy_ns": {"0": 20 * 10_000}}
    summed = Evidence(replace(profile, slices=SliceTable.empty(), idle=folded, meta=meta))
    assert summed.idle_ns is not None
    assert summed.idle_ns.sum() == pytest.approx(whole.idle_ns.sum(), rel=0.1)
    assert bounds_of(summed).by == "input"


def test_input_that_takes_little_does_not_bound_a_program() -> None:
    loading = "host 0-15 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
    launched = LATE.replace("0-4", "80-84").replace("7-17", "87-97")
    assert bounds_of(Evidence(stepped(loading + launched, 100))).by == "the host"


def test_communication_is_named_where_the_gpu_is_not_busy() -> None:
    message = "gpu8 20-60 nccl > ncclDevKernel_AllReduce#kernel\nhost 60-80 enumerate(DataLoader)#_Single.__next__\n"
    assert bounds_of(Evidence(stepped(message + LATE, 101))).by == "communication"


def test_communication_alone_is_at_least_what_was_not_side_by_side() -> None:
    # Of 80 us of messages and 60 us of products a step, 20 us were side by side.
    text = "gpu 0-60 main > gemm#kernel\ngpu8 40-120 nccl > ncclDevKernel_AllReduce#kernel"
    profile = stepped(text, 130)
    summed = replace(profile, slices=SliceTable.empty(), meta={**profile.meta, "gpu_busy_ns": {"0": 20 * 120_000}})
    is_message = np.array([summed.tree.label(node).startswith("nccl") for node in range(len(summed.tree))])
    for each in (profile, summed):
        assert alone_ns(Evidence(each), is_message).sum() / 20 == pytest.approx(60_000, rel=0.06)


def test_a_step_is_no_work_beside_a_copy() -> None:
    profile = stepped(
        "gpu 0-40 aten::copy_#operator > copy HtoD#memory\ngpu 30-50 aten::mm#operator > gemm#kernel", 100
    )
    is_copy = np.array([profile.tree.label(node) == "copy HtoD" for node in range(len(profile.tree))])
    ranges = profile.tracks.replace(kind=np.full(len(profile.tracks), TrackKind.RANGES, np.uint8))
    of_steps = profile.slices.replace(track=profile.slices.track + len(profile.tracks))
    marked = replace(
        profile,
        tracks=TrackTable.concatenate([profile.tracks, ranges]),
        slices=SliceTable.concatenate([profile.slices, of_steps]),
    )
    alone = [alone_ns(Evidence(each), is_copy).sum() for each in (profile, marked)]
    assert alone[0] == alone[1] == pytest.approx(20 * 30_000, rel=0.06)


def test_a_part_without_a_gpu_is_named_by_a_line_of_the_program() -> None:
    text = "root\n  /x/lib/python3.11/site-packages/torch/library.py:665@_del_library host=9ms\n  a.py:3@train host=4ms"
    (part,) = bounds_of(Evidence(profile_from_text(text))).parts
    assert part.at == "a.py:3"
    (part,) = bounds_of(Evidence(profile_from_text(text.partition("\n  a.py")[0]))).parts
    assert part.at == ""
