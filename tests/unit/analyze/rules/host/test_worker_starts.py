"""Workers that a DataLoader starts for each epoch are told apart from those that it keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.stepped import stepped

MAIN = "train.py:3@main"
START = "/lib/python3.12/site-packages/torch/utils/data/dataloader.py:1176@_MultiProcessingDataLoaderIter.__init__"
MM = f"{MAIN} > aten::mm#operator"
# Each of 20 steps is an epoch: 600 us of starting, then a kernel.
EPOCHS = f"""
samples 0-600 {MAIN} > {START}
host 600-604 {MM} > cuLaunchKernel#gpu_api ->1
gpu 607-990 {MM} > gemm#kernel <-1
"""


def found(spans: list[tuple[int, int]]) -> list[Finding]:
    workers = [{"pid": pid, "started_ns": start, "stopped_ns": stop} for pid, (start, stop) in enumerate(spans)]
    profile = stepped(EPOCHS, 1000)
    profile = replace(profile, meta={**profile.meta, "workers": workers})
    return analysis(Evidence(profile), ["worker-starts"]).findings


def test_workers_of_each_epoch_are_found_at_the_line_of_the_loop() -> None:
    (finding,) = found([(start, start + 900) for epoch in range(20) for start in (epoch * 1000, epoch * 1000 + 50)])
    assert "starts its workers 20 times" in finding.message
    assert (finding.file, finding.line) == ("train.py", 3)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.6 * 19 / 20, abs=0.03)  # the first start remains


@pytest.mark.parametrize(
    "spans",
    [
        [],
        [(0, 20_000), (50, 20_000)],
        # A second loader, for validation.
        [(0, 20_000), (50, 20_000), (9_000, 20_100)],
    ],
)
def test_workers_that_stay_are_fine(spans: list[tuple[int, int]]) -> None:
    assert found(spans) == []
