from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.straggler_jobs import JobPlan, write_job_files
from bragg.cli.rank_files import read_ranks
from bragg.errors import BadFile, UsageError
from bragg.formats.job import columns
from bragg.formats.job.columns import write_columns
from bragg.model.ranks.summary import RankSummary

polars = pytest.importorskip("polars")


@pytest.fixture
def ranks(tmp_path: Path) -> list[RankSummary]:
    write_job_files(JobPlan(n_ranks=3, n_steps=4, n_layers=2), tmp_path / "train.job")
    return read_ranks([tmp_path / "train.job"]).summaries


def test_tables_hold_every_collective_and_every_call_path(
    ranks: list[RankSummary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_RANKS_A_FILE", 2)
    size_bytes = write_columns(ranks, tmp_path / "out")
    files = sorted((tmp_path / "out").iterdir())
    assert size_bytes == sum(path.stat().st_size for path in files)
    assert [path.name for path in files] == [
        f"{name}-0000{number}.parquet" for name in ("collectives", "paths", "ranks") for number in (0, 1)
    ]
    found = {
        name: polars.read_parquet(tmp_path / "out" / f"{name}-*.parquet") for name in ("ranks", "collectives", "paths")
    }
    assert found["ranks"]["rank"].to_list() == [0, 1, 2]
    assert found["collectives"]["operation"].unique().to_list() == ["all-reduce"]
    for rank in ranks:
        own = found["collectives"].filter(polars.col("rank") == rank.rank)
        assert np.array_equal(own["duration_ns"].to_numpy(), rank.collectives().duration_ns)
        own = found["paths"].filter(polars.col("rank") == rank.rank)
        assert dict(own.select("label", "gpu_ns").iter_rows()) == dict(
            zip(rank.labels(), rank.paths().gpu_ns.tolist(), strict=True)
        )


def test_what_cannot_be_written_and_what_is_not_installed_is_said(
    ranks: list[RankSummary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadFile, match="cannot write"):
        write_columns(ranks, tmp_path / "file")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="polars is not installed"):
        write_columns(ranks, tmp_path / "out")
