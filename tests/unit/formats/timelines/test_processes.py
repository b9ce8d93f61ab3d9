from __future__ import annotations

from pathlib import Path

import pytest

from bragg import formats
from bragg.formats.timelines.processes import ranks_within
from tests.support.iprof_trace import iprof_trace


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "iprof.pftrace"
    path.write_bytes(iprof_trace(("x2", "x1")))
    return path


def test_the_processes_of_a_trace_are_ranks_by_host(trace: Path) -> None:
    whole = formats.load(trace)
    ranks = ranks_within(whole)
    assert [(each.run.rank, each.run.host, each.run.pid) for each in ranks] == [(0, "x1", 4001), (1, "x2", 4000)]
    assert [each.total("gpu_time") for each in ranks] == [340, 340]
    assert sum(len(each.slices) for each in ranks) == len(whole.slices)
    for each in ranks:
        each.check()
        assert set(each.tracks.host) == {each.run.host}
        assert each.total("host_time") == whole.total("host_time") / 2


def test_one_process_is_no_job(tmp_path: Path) -> None:
    path = tmp_path / "iprof.pftrace"
    path.write_bytes(iprof_trace())
    assert ranks_within(formats.load(path)) == []
