from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bragg import formats
from bragg.errors import BadFile
from bragg.formats import bragg, capture
from bragg.model import (
    Confidence,
    CounterTable,
    Finding,
    Gain,
    IdleKind,
    Place,
    Profile,
    Quantity,
    Severity,
    SliceTable,
)
from tests.support.captures import small_capture
from tests.support.profiles import tree_to_text

EVIDENT = Finding(
    "synchronization",
    Severity.WARNING,
    "the host waits for the GPU",
    evidence=(Quantity("waits a step", 3), Quantity("time", 5e6, "ns")),
    places=(Place("train.py", 7, node=2),),
    gain=Gain(1e6, 4e6, "the host", waits_are_measured=True),
    confidence=Confidence.PROVEN,
)

GOLDEN = Path(__file__).parents[2] / "golden/recordings/pairs/h100-cpu_work_slow.bragg"


def test_a_gain_of_an_older_version_is_read_without_what_could_mean_two_things() -> None:
    values = EVIDENT.to_json()
    old = {"wall_ns": 1e6, "of_ns": 4e6, "limit": "the host", "is_measured": True, "is_once": False}
    assert Finding.from_json({**values, "gain": old}).gain == Gain(1e6, 4e6, "the host")


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    return capture.read(small_capture().write(tmp_path / "small.part"))


def rewrite(path: Path, member: str, content: bytes) -> None:
    """Replace one member of an archive by content of which the checksum is right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, old in {**members, member: content}.items():
            archive.writestr(name, old)


def header_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        header: dict[str, Any] = json.loads(archive.read("meta.json"))
    return header


def test_everything_is_read_back(profile: Profile, tmp_path: Path) -> None:
    written = replace(
        profile,
        carried=[Finding("slow", Severity.WARNING, "matmul is slow", "make it fast", node=3), EVIDENT],
        sources={"train.py": "x = 1\nπ = 3\n"},
        counters=CounterTable(np.array([5]), np.array([1]), np.array([0.5])),
    )
    path = tmp_path / "run.bragg"
    bragg.write(written, path)
    found = bragg.read(path)
    assert tree_to_text(found) == tree_to_text(profile)
    assert found.meta == profile.meta
    assert found.carried == written.carried
    assert found.sources == written.sources
    assert found.counters.value.tolist() == [0.5]
    for table in ("tracks", "slices", "kernels", "durations"):
        one, other = getattr(found, table), getattr(written, table)
        for name in one.columns():
            assert list(getattr(one, name)) == list(getattr(other, name)), (table, name)
    for name, metric in written.metrics.items():
        assert np.array_equal(found.own(name), metric.own, equal_nan=True)
        assert (found.metrics[name].unit, found.metrics[name].kind) == (metric.unit, metric.kind)


def test_anyone_can_open_it_with_numpy(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    bragg.write(profile, path)
    with np.load(path) as archive:
        assert archive["metrics/gpu_time"].tolist() == [0, 0, 0, 300]
        assert archive["nodes/parent"].tolist() == [-1, 0, 1, 2]
    assert header_of(path)["version"] == [1, 5]


@pytest.mark.parametrize("unit", [[], {}, None, 7])
def test_a_unit_that_is_not_a_text_is_damage(profile: Profile, tmp_path: Path, unit: object) -> None:
    path = tmp_path / "run.bragg"
    bragg.write(profile, path)
    header = header_of(path)
    header["metrics"][0]["unit"] = unit
    rewrite(path, "meta.json", json.dumps(header).encode())
    with pytest.raises(BadFile, match="is damaged"):
        bragg.read(path)


def test_equal_profiles_give_equal_bytes(profile: Profile, tmp_path: Path) -> None:
    for name in ("one", "two"):
        bragg.write(profile, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_finish_turns_a_capture_into_the_same_file_as_reading_and_writing(profile: Profile, tmp_path: Path) -> None:
    finished = formats.finish(tmp_path / "small.part", tmp_path / "finished.bragg")
    assert finished.total("gpu_time") == 300
    assert len(finished.slices) == 0
    bragg.write(profile, tmp_path / "written.bragg")
    assert (tmp_path / "finished.bragg").read_bytes() == (tmp_path / "written.bragg").read_bytes()


def test_slices_are_ordered_also_over_the_ends_of_blocks(profile: Profile, tmp_path: Path) -> None:
    blocks = [profile.slices.take(np.array(rows)) for rows in ([3, 1], [4, 0, 2])]
    bragg.write(profile, tmp_path / "run.bragg", slices=blocks)
    assert bragg.read(tmp_path / "run.bragg").slices.start_ns.tolist() == [1000, 1100, 1200, 1300, 1600]


def test_tracks_of_older_files_are_of_no_rank_and_host(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    bragg.write(profile, path)
    rewrite(path, "meta.json", json.dumps({**header_of(path), "version": [1, 2]}).encode())
    rewrite(path, "tracks/rank.npy", b"no array")
    found = bragg.read(path).tracks
    assert (found.rank.tolist(), found.host) == ([-1] * len(profile.tracks), [""] * len(profile.tracks))


def test_the_trace_can_be_left_out(profile: Profile, tmp_path: Path) -> None:
    bragg.write(profile, tmp_path / "run.bragg")
    assert len(bragg.read(tmp_path / "run.bragg", trace=False).slices) == 0


def test_an_archive_of_another_program_is_no_damaged_profile(tmp_path: Path) -> None:
    other = tmp_path / "model.pt"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("model/data.pkl", b"x")
    with pytest.raises(BadFile, match=r"model\.pt is not a profile: unknown format"):
        formats.load(other)


def test_a_damaged_block_of_slices_is_left_out_and_counted(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    blocks = [profile.slices.take(np.array(rows)) for rows in ([0, 1], [2, 3, 4])]
    bragg.write(profile, path, slices=blocks)
    rewrite(path, "slices/0/node.npy", b"no array")
    found = bragg.read(path)
    assert found.meta["lost"] == {"slice_blocks": 1, "slices": 2}
    assert found.slices.start_ns.tolist() == [1200, 1300, 1600]
    assert found.total("gpu_time") == 300


def test_a_later_major_version_is_refused_and_a_later_minor_one_is_read(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    bragg.write(profile, path)
    header = header_of(path)
    rewrite(path, "meta.json", json.dumps({**header, "version": [1, 99], "news": 1}).encode())
    assert bragg.read(path).total("gpu_time") == 300
    rewrite(path, "meta.json", json.dumps({**header, "version": [2, 0]}).encode())
    with pytest.raises(BadFile, match="version 2, this bragg reads up to 1") as error:
        bragg.read(path)
    assert error.value.hint == "Update bragg"


def test_reasons_to_idle_that_a_newer_version_tells_apart_are_not_known(tmp_path: Path) -> None:
    recorded = bragg.read(GOLDEN)
    path = tmp_path / "run.bragg"
    bragg.write(recorded, path)
    rewrite(path, "meta.json", json.dumps({**header_of(path), "version": [1, 99]}).encode())
    rewrite(path, "idle/kind.npy", array_bytes(np.where(recorded.idle.kind == IdleKind.LATE, 40, recorded.idle.kind)))
    found = bragg.read(path).idle
    assert found.idle_ns.sum() == recorded.idle.idle_ns.sum() > 0
    assert set(found.kind[recorded.idle.kind == IdleKind.LATE].tolist()) == {IdleKind.NOT_KNOWN}


def test_what_a_newer_version_does_otherwise_is_refused_in_words(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    bragg.write(profile, path)
    rewrite(path, "meta.json", json.dumps({**header_of(path), "version": [1, 99]}).encode())
    kinds = np.full(len(profile.tree.frames), 77, np.uint8)
    rewrite(path, "frames/kind.npy", array_bytes(kinds))
    with pytest.raises(BadFile, match=r"has version 1\.99, this bragg reads up to 1\.\d+: .*known kind") as error:
        bragg.read(path)
    assert error.value.hint == "Update bragg"


def array_bytes(values: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, values)
    return content.getvalue()


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("nodes/parent.npy", array_bytes(np.array([-1, 0, 3, 2], np.int32))),
        ("nodes/parent.npy", array_bytes(np.array([-1.0, 0, 1, 2]))),
        ("nodes/frame.npy", array_bytes(np.array([0, 1, 2, 99], np.int32))),
        ("nodes/parent.npy", array_bytes(np.array([-1, 0, 1, 2], np.int32)).replace(b"(4,), ", b"(9000000000000,), ")),
        ("nodes/parent.npy", b"\x93NUMPY\x01\x00"),
        ("frames/name.json", b'["root", 1, "a", "b"]'),
        ("frames/name.json", b"{}"),
        ("frames/kind.npy", array_bytes(np.array([0, 1, 6, 200], np.uint8))),
        ("metrics/gpu_time.npy", array_bytes(np.array([1, 2], np.int64))),
        ("slices/0/node.npy", array_bytes(np.full((1, 5), 77, np.uint8))),
        ("meta.json", b"[]"),
        ("meta.json", b"{"),
        ("meta.json", b"[" * 100_000),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_members_that_contradict_the_format_are_refused(
    member: str, content: bytes, profile: Profile, tmp_path: Path
) -> None:
    path = tmp_path / "run.bragg"
    bragg.write(profile, path)
    rewrite(path, member, content)
    with pytest.raises(BadFile, match=r"run\.bragg is damaged") as error:
        bragg.read(path)
    assert error.value.hint
    assert "\n" not in error.value.message


def test_file_names_that_are_no_unicode_are_kept(profile: Profile, tmp_path: Path) -> None:
    meta = {"command": ["train.py", os.fsdecode(b"\xff.txt")]}
    bragg.write(replace(profile, meta=meta), tmp_path / "run.bragg")
    assert bragg.read(tmp_path / "run.bragg").meta == meta
    formats.export(replace(profile, meta=meta), "chrome", tmp_path / "run.json")


def test_a_truncated_file_is_refused(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    bragg.write(profile, path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(BadFile, match="is damaged"):
        bragg.read(path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    path.write_bytes(b"old")

    def breaks() -> Any:
        yield profile.slices
        raise KeyboardInterrupt

    before = set(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        bragg.write(profile, path, slices=breaks())
    assert path.read_bytes() == b"old"
    assert set(tmp_path.iterdir()) == before


def test_100_000_graph_kernels_take_at_most_4_bytes_each(profile: Profile, tmp_path: Path) -> None:
    kernels, replays = 500, 200
    random = np.random.default_rng(0)
    duration = np.tile(random.integers(1200, 6000, kernels), replays) + random.integers(0, 64, kernels * replays)
    start = 1_760_000_000_000_000_000 + np.cumsum(duration + random.integers(400, 2000, len(duration)))
    node = np.full(len(start), 3, np.int32)
    correlation = np.repeat(np.arange(1, replays + 1), kernels)
    slices = SliceTable(start, duration, node, np.ones(len(start), np.int32), correlation)
    path = tmp_path / "run.bragg"
    bragg.write(replace(profile, slices=slices), path)
    assert path.stat().st_size / len(slices) < 4
    assert bragg.read(path).slices.start_ns.tolist() == start.tolist()
