from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

from benchmarks.straggler_jobs import JobPlan, profiles_of
from bragg import formats
from bragg.analyze.ranks.summarize import summarize
from bragg.errors import BadFile
from bragg.formats.bragg import read, write
from bragg.formats.files import open_file
from bragg.formats.job import summaries, summary_slices
from bragg.formats.job.summaries import members_of, read_summary
from bragg.model import Profile
from bragg.model.ranks.summary import PathTable
from tests.support.captures import small_capture

PLAN = JobPlan(n_ranks=2, n_steps=4, n_layers=2)


@pytest.fixture
def profile() -> Profile:
    return profiles_of(PLAN)[1]


def test_the_summary_of_a_file_is_that_of_its_profile(profile: Profile, tmp_path: Path) -> None:
    write(profile, tmp_path / "a.bragg")
    found, made = read_summary(tmp_path / "a.bragg"), summarize(read(tmp_path / "a.bragg"))
    assert found is not None
    assert (found.rank, found.host, found.wall_ns, found.is_whole) == (1, "node0", made.wall_ns, True)
    assert found.calls.group == made.calls.group == ["0"]
    for one, other in ((found.collectives(), made.collectives()), (found.paths(), made.paths())):
        for name in one.columns():
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert found.labels() == made.labels()


def test_the_ways_of_nccl_are_kept(profile: Profile, tmp_path: Path) -> None:
    call = {"function": "AllReduce", "dtype": "f32", "count": 1024, "algorithm": "RING", "protocol": "LL"}
    calls = [{**call, "channels": channels, "calls": calls} for channels, calls in ((4, 90), (2, 10))]
    told = {"communicators": [{"torch_group": "0", "n_ranks": 2, "calls": calls}]}
    write(replace(profile, meta={**profile.meta, "nccl": told}), tmp_path / "a.bragg")
    found = read_summary(tmp_path / "a.bragg")
    assert found is not None
    assert found.ways == {("0", "all-reduce", 4096): "RING LL, 4 channels"}


def test_a_profile_of_no_rank_has_none(profile: Profile, tmp_path: Path) -> None:
    alone = replace(profile, meta={name: value for name, value in profile.meta.items() if name != "rank"})
    write(alone, tmp_path / "a.bragg")
    assert read_summary(tmp_path / "a.bragg") is None


def test_another_format_has_none(profile: Profile, tmp_path: Path) -> None:
    formats.export(profile, "chrome", tmp_path / "a.json")
    assert read_summary(tmp_path / "a.json") is None


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("ranks/facts.json", b"{"),
        ("ranks/calls.json", b"[]"),
        ("ranks/calls.json", b"{}"),
        ("ranks/collectives.npy", b"\x93NUMPY"),
        ("ranks/paths.npy", b""),
        ("ranks/labels.json", b'["a'),
        ("ranks/labels.json", b'["a"]'),
        ("ranks/labels.json", b"7"),
        ("ranks/labels.json", b"[" * 100_000),
    ],
)
def test_a_damaged_summary_is_told(profile: Profile, tmp_path: Path, member: str, content: bytes) -> None:
    write(profile, tmp_path / "a.bragg")
    with ZipFile(tmp_path / "a.bragg") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with ZipFile(tmp_path / "b.bragg", "w", ZIP_DEFLATED) as archive:
        for name, found in {**members, member: content}.items():
            archive.writestr(name, found)
    with pytest.raises(BadFile, match="is damaged"):
        _read_whole(tmp_path / "b.bragg")


def _read_whole(path: Path) -> PathTable:
    summary = read_summary(path)
    assert summary is not None
    summary.labels()
    return summary.paths()


def test_a_collective_of_no_call_is_damage(profile: Profile, tmp_path: Path) -> None:
    write(profile, tmp_path / "a.bragg")
    with ZipFile(tmp_path / "a.bragg") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    calls = b'{"group":[],"operation":[],"dtype":[],"size_bytes":[],"path":[]}'
    with ZipFile(tmp_path / "b.bragg", "w", ZIP_DEFLATED) as archive:
        for name, found in {**members, "ranks/calls.json": calls}.items():
            archive.writestr(name, found)
    with pytest.raises(BadFile, match="of no call"):
        read_summary(tmp_path / "b.bragg")


def test_steps_and_places_beyond_the_collectives_are_damage(profile: Profile, tmp_path: Path) -> None:
    summary = summarize(profile)
    for column, value, what in (
        ("step", 1 << 30, "no step"),
        ("sequence", 1 << 40, "no place"),
        ("call", -1, "no call"),
    ):
        values = getattr(summary.collectives(), column).copy()
        values[-1] = value
        table = summary.collectives().replace(**{column: values})
        members = members_of(replace(summary, collectives=lambda table=table: table))
        with ZipFile(tmp_path / "a.bragg", "w", ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        with pytest.raises(BadFile, match=what):
            read_summary(tmp_path / "a.bragg")


def test_the_capture_of_a_rank_becomes_a_file_with_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = small_capture().meta(rank=3, ranks=4, exit_code=0).end().write(tmp_path / "42.part")
    formats.finish(capture, tmp_path / "a.bragg")
    found = read_summary(tmp_path / "a.bragg")
    assert found is not None
    assert (found.rank, found.paths().gpu_ns.sum()) == (3, 300)
    monkeypatch.setattr(summary_slices, "_MAX_SLICES", 1)
    formats.finish(capture, tmp_path / "b.bragg")
    assert read_summary(tmp_path / "b.bragg") is None


def test_a_file_is_opened_once_for_its_summary_and_the_sums_of_its_call_paths(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def counted(path: Path) -> IO[bytes]:
        opened.append(path)
        return open_file(path)

    path = tmp_path / "rank00000.bragg"
    write(profile, path)
    monkeypatch.setattr(summaries, "open_file", counted)
    found = read_summary(path)
    assert found is not None
    first = found.paths()
    assert len(opened) == 1
    assert found.paths().path.tolist() == first.path.tolist()  # Which does not stay in memory.
    assert len(opened) == 2
