from __future__ import annotations

import struct
from pathlib import Path

import pytest

from bragg import formats
from bragg.errors import BadFile, UsageError
from bragg.formats import sampling
from bragg.model import Profile
from tests.support.profiling_file import INTERVAL_US, LOAD, changed, profiling_file, repeat, samples

WHOLE = profiling_file(samples())


def counted(profile: Profile) -> dict[str, int]:
    """Samples of each call path of its own."""
    tree, own = profile.tree, profile.metric("samples").own.tolist()
    return {
        " > ".join(tree.label(above) for above in tree.path(node)[1:]): own[node]
        for node in range(len(tree))
        if own[node]
    }


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("n_statistics", [0, 32, 56])
def test_samples_are_counted_by_call_path(tmp_path: Path, order: str, is_wide: bool, n_statistics: int) -> None:
    path = tmp_path / "profile.bin"
    content = profiling_file(samples(order), order=order, is_wide=is_wide, n_statistics=n_statistics)
    path.write_bytes(content)
    profile = formats.load(path)
    assert counted(profile) == {
        "train.py:9@main > train.py:4@step": 5,
        "train.py:9@main > train.py:4@step > <GC>": 1,
        "/lib/loader.py:300@load": 2,
        "train.py:9@main > /lib/loader.py:300@load": 3,
    }
    assert profile.total("host_time") == 11 * INTERVAL_US * 1000
    assert (profile.meta["recorder"], profile.meta["python"]) == ("profiling.sampling", "3.15.0")


def test_compressed_samples_are_read_where_zstd_is(tmp_path: Path) -> None:
    zstd = pytest.importorskip("backports.zstd")
    path = tmp_path / "profile.bin"
    path.write_bytes(profiling_file(samples(), pack=zstd.compress))
    assert formats.load(path).total("samples") == 11
    path.write_bytes(profiling_file(samples(), pack=lambda content: zstd.compress(content)[:-3]))
    with pytest.raises(BadFile, match="its samples"):
        formats.load(path)


def test_without_zstd_the_hint_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(sampling, "import_module", missing)
    path = tmp_path / "profile.bin"
    path.write_bytes(profiling_file(samples(), pack=bytes))
    with pytest.raises(UsageError, match="compressed with zstd") as error:
        formats.load(path)
    assert "bragg[zstd]" in error.value.hint


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (profiling_file(samples(), version=3), "version 3, of Python 3.15.0"),
        (WHOLE[:-1], "it has 365 bytes, and had"),
        (WHOLE[:80] + WHOLE[90:], "it has"),
        (profiling_file(samples()[:-1]), "repeated samples break off"),
        (profiling_file(samples() + b"\0"), "a text breaks off"),
        (profiling_file(changed(1, 1, None, [4])), "there is no frame 4"),
        (profiling_file(changed(1, 3, 1, [LOAD])), "a stack keeps -1 of 0 frames"),
        (profiling_file(changed(1, 2, 1, [LOAD])), "a stack keeps 1 of 0 frames"),
        (profiling_file(changed(1, 9, 1, [LOAD])), "a stack is encoded as 9"),
        (profiling_file(struct.pack("<QIB", 1, 0, 0) + b"\xff" * 12), "an integer breaks off"),
        (profiling_file(repeat(1, 3)[:-1]), "repeated samples break off"),
    ],
)
def test_damage_is_told_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "profile.bin"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=said) as error:
        formats.load(path)
    assert "\n" not in error.value.message


def test_a_small_file_of_many_records_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "profile.bin"
    path.write_bytes(profiling_file(changed(1, 1, None, [LOAD]) * 1000))
    monkeypatch.setattr("bragg.formats.limits._LEAST_ROWS", 0)
    assert formats.load(path).total("samples") == 1000
    monkeypatch.setattr(sampling, "_RECORDS_A_ROW", 0.1)
    with pytest.raises(BadFile, match="too many for a file of its size"):
        formats.load(path)
