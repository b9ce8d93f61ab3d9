"""Batches that the main thread makes itself: what comes after them is launched late."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.input_waits import idle_share_of_workers, late_batches_ns
from bragg.analyze.engine import analysis
from bragg.grouping.workers import with_workers
from bragg.model import Metric, MetricKind
from bragg.model.host_time import WAIT_TIME
from tests.support.profiles import profile_from_text
from tests.support.stepped import stepped

COPY = "train.py:21@main > aten::copy_#operator"
TEXT = """
host 0-900 train.py:20@main > enumerate(DataLoader)#{}.__next__
host 900-905 train.py:21@main > aten::copy_#operator ->1
gpu 910-960 train.py:21@main > aten::copy_#operator > copy#kernel <-1
"""


def waiting(kind: str, in_copy_ms: float) -> Evidence:
    """Of 17.1 ms (19 steps) in a loader, none of which the GPU is said to wait for, and so much before a copy."""
    profile = stepped(TEXT.format(kind), 1000)
    evidence = Evidence(profile)
    copies = np.array([name == "aten::copy_" for name in profile.tree.frames.name])[profile.tree.frame]
    evidence.idle_ns = evidence.code_wait_ns = np.where(copies, in_copy_ms * 1e6, 0.0)
    return evidence


@pytest.mark.parametrize(
    ("kind", "in_copy_ms", "late_ms"),
    [
        ("_SingleProcessDataLoaderIter", 30.0, 17.1),
        ("_SingleProcessDataLoaderIter", 5.0, 5.0),
        ("_MultiProcessingDataLoaderIter", 30.0, 0.0),
    ],
)
def test_the_launch_after_a_batch_that_the_main_thread_makes_waits_for_it(
    kind: str, in_copy_ms: float, late_ms: float
) -> None:
    evidence = waiting(kind, in_copy_ms)
    assert late_batches_ns(evidence) == late_ms * 1e6
    found = {each.rule: each.gain for each in analysis(evidence, ["data-loading"]).findings}
    assert found.keys() == ({"data-loading"} if late_ms else set())


STACK = "train.py:20@main > enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ > aten::stack#operator"


@pytest.mark.parametrize(("work", "is_on_gpu"), [("CatArrayBatchedCopy#kernel", True), ("copy HtoD#memory", False)])
def test_workers_are_not_advised_for_items_on_the_gpu(work: str, is_on_gpu: bool) -> None:
    stack = f"\nhost 880-890 {STACK} ->2\ngpu 892-902 {STACK} > {work} <-2"
    text = TEXT.format("_SingleProcessDataLoaderIter") + stack
    (finding,) = analysis(Evidence(stepped(text, 1000)), ["data-loading"]).findings
    assert ("items that are on the GPU" in finding.message) == is_on_gpu
    assert finding.hint.startswith("take whole batches" if is_on_gpu else "DataLoader(num_workers=4, pin_memory=True")


@pytest.mark.parametrize(
    ("made_us", "copied_us", "rules"), [(900, 50, {"data-loading"}), (20, 950, {"data-loading", "device-copies"})]
)
def test_copies_that_put_together_items_on_the_gpu_go_with_a_late_loader(
    made_us: int, copied_us: int, rules: set[str]
) -> None:
    loader = f"host 0-{made_us} train.py:20@main > enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    end = made_us + copied_us
    stack = (
        f"host {made_us - 15}-{made_us - 5} {STACK} ->2\ngpu {made_us}-{end} {STACK} > CatArrayBatchedCopy#kernel <-2"
    )
    found = analysis(Evidence(stepped(f"{loader}\n{stack}", end + 10)), ["data-loading", "device-copies"]).findings
    assert {each.rule for each in found} == rules


@pytest.mark.parametrize(
    ("waits_below", "keeps_up"),
    [
        ("/torch/utils/data/_utils/worker.py:300@_worker_loop", True),
        ("/torch/utils/data/_utils/fetch.py:54@fetch", False),
    ],
    ids=["for a batch to make", "for what an item is read from"],
)
def test_workers_that_wait_for_work_need_no_more_of_them(waits_below: str, keeps_up: bool) -> None:
    worker = profile_from_text(
        "root\n  /torch/utils/data/_utils/worker.py:374@_worker_loop host=1ms"
        f"\n    /torch/utils/data/_utils/{waits_below}\n      [waiting] host=9ms"
    )
    waits = worker.tree.frame == worker.tree.frames.name.index("[waiting]")
    waited = Metric(WAIT_TIME, "ns", MetricKind.EXCLUSIVE, np.where(waits, 9_000_000, 0))
    worker = replace(worker, metrics={**worker.metrics, WAIT_TIME: waited})
    training = stepped(
        "host 0-400 train.py:5@main > enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 990
    )
    evidence = Evidence(with_workers(training, [worker]))
    assert idle_share_of_workers(evidence.profile) == pytest.approx(0.9 if keeps_up else 0.0)
    (finding,) = analysis(evidence, ["data-loading"]).findings
    assert ("though these wait 90 % of their time" in finding.message) == keeps_up
    assert finding.hint.startswith("not more num_workers" if keeps_up else "cheaper items, or more num_workers")
