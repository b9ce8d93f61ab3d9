from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bragg.cli.main import main
from bragg.errors import BadFile
from bragg.formats.job.nccl_inspector import read_inspector
from tests.support.jobs import rank_profile, write_rank

STEPS, STEP_US = 30, 10_000
BEGAN_US = 1_748_030_377_000_000


def collective(rank: int, number: int, took_us: int, end_us: int, **header: Any) -> dict[str, Any]:
    return {
        "header": {"id": "0x7f", "rank": rank, "n_ranks": 3, "nnodes": 1, **header},
        "metadata": {"hostname": "n1", "pid": 100 + rank, "dump_timestamp_us": end_us + 300},
        "coll_perf": {
            "coll": "AllReduce",
            "coll_sn": number,
            "coll_msg_size_bytes": 1 << 20,
            "coll_exec_time_us": took_us,
            "event_trace_ts": {"kernel_events": [{"kernel_stop_ts": end_us - 1}, {"kernel_stop_ts": end_us}]},
        },
    }


def log(rank: int, late_us: int = 2_000) -> list[dict[str, Any]]:
    """Rank 1 comes late to each all-reduce, which takes 100 us then."""
    took_us = 100 if rank == 1 else 100 + late_us
    return [collective(rank, 1400 + step, took_us, BEGAN_US + step * STEP_US) for step in range(STEPS)]


def write(path: Path, objects: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, objects)) + "\n")
    return path


def test_a_log_gives_the_collectives_of_its_rank(tmp_path: Path) -> None:
    found = read_inspector(write(tmp_path / "a.log", log(0)))
    assert found is not None
    assert (found.rank, found.host, found.is_whole, len(found.collectives())) == (0, "n1", True, STEPS)
    assert (found.calls.group, found.calls.operation, found.calls.size_bytes.tolist()) == (
        ["0x7f"],
        ["all-reduce"],
        [1 << 20],
    )
    table = found.collectives()
    assert table.sequence[:2].tolist() == [1400, 1401]
    assert (table.start_ns + table.duration_ns)[0] == BEGAN_US * 1000


def test_the_rank_that_others_wait_for_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write(tmp_path / f"{rank}.log", log(rank)) for rank in range(3)]
    assert main(["ranks", *map(str, files), "--json"]) == 0
    (late,) = json.loads(capsys.readouterr().out)["stragglers"]
    assert (late["rank"], late["when"], late["cause"]) == (1, "always", "unknown")
    assert late["each_ns"] == pytest.approx(2e6, rel=0.01)


def test_the_size_of_a_reduce_scatter_is_that_of_its_input(tmp_path: Path) -> None:
    told = collective(0, 0, 10, BEGAN_US)
    told["coll_perf"]["coll"] = "ReduceScatter"
    found = read_inspector(write(tmp_path / "a.log", [told]))
    assert found is not None
    assert found.calls.size_bytes.tolist() == [3 << 20]


def test_the_last_object_of_a_killed_process_may_break_off(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", log(0))
    path.write_text(path.read_text()[:-40])
    found = read_inspector(path)
    assert found is not None
    assert len(found.collectives()) == STEPS - 1


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", log(0))
    text = path.read_text()
    path.write_text(text[:500] + text[600:])
    with pytest.raises(BadFile, match="is damaged"):
        read_inspector(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("coll_exec_time_us", 1e308), ("coll_sn", 1 << 64), ("coll_msg_size_bytes", 10**30)],
)
def test_a_number_that_is_too_large_is_damage(tmp_path: Path, name: str, value: float) -> None:
    objects = log(0)
    objects[1]["coll_perf"][name] = value
    with pytest.raises(BadFile, match="is damaged"):
        read_inspector(write(tmp_path / "a.log", objects))


def test_a_process_of_several_ranks_is_refused_and_other_files_are_none(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="several ranks"):
        read_inspector(write(tmp_path / "a.log", log(0) + log(1)))
    assert read_inspector(write(tmp_path / "b.json", [{"traceEvents": []}])) is None
    assert read_inspector(write_rank(tmp_path, rank_profile("root\n  k 1ms", 0)).path) is None
