"""Batches that the main thread makes itself: what comes after them is launched late."""

from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.input_waits import late_batches_ns
from bragg.analyze.engine import analysis
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
