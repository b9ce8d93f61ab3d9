"""Traces of PyTorch's profiler, one of each rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bragg.cli.main import main
from bragg.cli.rank_files import read_ranks

STEPS, STEP_US = 20, 10_000


def trace(rank: int, late_us: int) -> dict[str, Any]:
    """A matmul and an all-reduce in each step; rank 1 computes so much longer, and rank 0 waits in the all-reduce."""
    events: list[dict[str, Any]] = []

    def add(category: str, name: str, begin_us: float, took_us: float, tid: int, **arguments: Any) -> None:
        place = {"pid": 0 if category == "kernel" else 100 + rank, "tid": tid}
        events.append(
            {"ph": "X", "cat": category, "name": name, "ts": begin_us, "dur": took_us, **place, "args": arguments}
        )

    slowest = 4_000 + late_us
    for step in range(STEPS):
        begin, ids = step * STEP_US + 1_000 * rank, (3 * step + 1, 3 * step + 2)
        worked = 4_000 + late_us * rank
        first, second = ({"correlation": number, "External id": number} for number in ids)
        add("cpu_op", "aten::mm", begin, 50, 1, **{"External id": ids[0]})
        add("cuda_runtime", "cudaLaunchKernel", begin + 10, 5, 1, **first)
        add("kernel", "gemm", begin + 100, worked, 7, **first, device=rank, stream=7)
        told = {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float", "Group size": 2}
        told |= {"Process Group Name": "0", "External id": ids[1]}
        add("cpu_op", "record_param_comms", begin + 60, 30, 1, **told)
        add("cuda_runtime", "cudaLaunchKernel", begin + 70, 5, 1, **second)
        name, waits = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", slowest - worked + 200
        add("kernel", name, begin + 100 + worked, waits, 20, **second, device=rank, stream=20)
    place = {"backend": "nccl", "rank": rank, "world_size": 2}
    return {"schemaVersion": 1, "distributedInfo": place, "host_name": f"n{rank}", "traceEvents": events}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"{rank}.json" for rank in range(2)]
    for rank, path in enumerate(found):
        path.write_text(json.dumps(trace(rank, 800)))
    return found


def test_collectives_of_traces_are_matched_by_their_process_group(files: list[Path]) -> None:
    summaries = read_ranks(files).summaries
    assert [(each.rank, each.host, len(each.collectives())) for each in summaries] == [(0, "n0", 20), (1, "n1", 20)]
    calls = summaries[0].calls
    assert (calls.group, calls.operation, calls.dtype) == (["0"], ["all-reduce"], ["f32"])
    assert calls.size_bytes.tolist() == [4096]


def test_the_rank_that_others_wait_for_is_named(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranks", *map(str, files), "--json"]) == 0
    (late,) = json.loads(capsys.readouterr().out)["stragglers"]
    assert (late["rank"], late["when"], late["cause"]) == (1, "always", "slow GPU")
    assert late["each_ns"] == pytest.approx(800_000, rel=0.01)
