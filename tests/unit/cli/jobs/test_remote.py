from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.straggler_jobs import KINDS, write_job_files
from bragg.cli.jobs.remote import local_files
from bragg.errors import UsageError
from bragg.views.web.server import ProfileServer
from tests.support.iprof_trace import iprof_trace
from tests.unit.cli.conftest import Bragg

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A job in an object store: here that of fsspec in memory."""
    store = fsspec.filesystem("memory")
    for path in write_job_files(KINDS["slow-gpu"], tmp_path / "train.job"):
        store.pipe(f"/bucket/train.job/{path.name}", path.read_bytes())
    store.pipe("/bucket/train.job/notes.txt", b"of no rank")
    yield "memory://bucket/train.job"
    store.rm("/bucket", recursive=True)


def test_a_job_of_an_object_store_is_compared(bragg: Bragg, address: str) -> None:
    ended = bragg("ranks", address, "--json")
    assert ended.exit_code == 0, ended.stderr
    assert [each["rank"] for each in json.loads(ended.stdout)["stragglers"]] == list(KINDS["slow-gpu"].truth.ranks)


def test_verbs_that_only_print_read_addresses(bragg: Bragg, address: str) -> None:
    ended = bragg("view", address, "--group-by", "rank", "--json")
    assert {row["name"] for row in json.loads(ended.stdout)["rows"]} >= {
        f"rank {number} (node0)" for number in range(8)
    }
    assert bragg("tally", address).stdout.splitlines()[0].endswith("train.job")
    assert json.loads(bragg("info", f"{address}/rank00003.bragg", "--json").stdout)["meta"]["rank"] == 3
    assert bragg("view", "memory://bucket/none.bragg").exit_code == 6
    told = bragg("analyze", address).stdout
    assert "holds up the other 7 ranks" in told


def test_what_is_made_of_an_address_is_written_here_and_named_by_it(
    bragg: Bragg, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = json.loads(bragg("report", address, "--json").stdout)
    assert told["page"] == "train.html"
    assert told["file"].startswith(f"{address}/rank0000")
    assert bragg("report", f"{address}/rank00003.bragg").stderr.endswith(f"bragg view {address}/rank00003.bragg\n")
    assert json.loads(bragg("export", f"{address}/rank00003.bragg", "-f", "chrome", "--json").stdout)[
        "file"
    ].startswith("rank00003.")
    assert json.loads(bragg("export", address, "-f", "perfetto", "--json").stdout)["file"].startswith("train.")
    compared = json.loads(bragg("diff", f"{address}/rank00002.bragg", f"{address}/rank00003.bragg", "--json").stdout)
    assert [compared["before"], compared["after"]] == [f"{address}/rank00002.bragg", f"{address}/rank00003.bragg"]


def test_a_page_that_follows_files_begins_with_those_at_an_address(
    bragg: Bragg, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    def serve(server: ProfileServer, *_: object) -> None:
        shown.append(server.title)
        raise KeyboardInterrupt

    monkeypatch.setattr(ProfileServer, "serve_forever", serve)
    assert bragg("web", f"{address}/rank00003.bragg", "--no-open").exit_code == 0
    assert shown == ["rank00003.bragg - bragg"]


def test_copies_are_gone_afterwards_and_local_paths_stay(address: str, tmp_path: Path) -> None:
    with local_files([address, f"{address}/rank00003.bragg", str(tmp_path)]) as (directory, file, local):
        assert len(list(directory.iterdir())) == 8
        assert (file.name, file.is_file(), local) == ("rank00003.bragg", True, tmp_path)
    assert not directory.exists()
    assert not file.exists()


def test_files_of_another_profiler_in_a_store_are_compared(bragg: Bragg) -> None:
    store = fsspec.filesystem("memory")
    for rank, host in enumerate(("x1", "x2")):
        store.pipe(f"/traces/iprof.{rank}.pftrace", iprof_trace((host,)))
    store.pipe("/traces/notes.txt", b"of no rank")
    store.pipe("/other/settings.json", b"{}")
    try:
        ended = bragg("ranks", "memory://traces", "--json")
        assert json.loads(ended.stdout)["ranks"] == [0, 1]
        ended = bragg("ranks", "memory://other")
        assert ended.exit_code == 6
        assert ended.stderr.startswith("error: there is no profile of a rank in memory://other")
    finally:
        store.rm("/traces", recursive=True)
        store.rm("/other", recursive=True)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("memory://bucket/none", "cannot read memory://bucket/none"),
        ("nothing://bucket", "cannot read nothing://bucket"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(bragg: Bragg, address: str, word: str, said: str) -> None:
    ended = bragg("ranks", word)
    assert ended.exit_code != 0
    assert said in ended.stderr.splitlines()[0]


def test_errors_of_a_store_that_are_its_own_are_said_in_one_line(bragg: Bragg, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoCredentialsError(Exception):
        """As botocore's, which is no OSError."""

    def refuse(*_: object) -> bool:
        raise NoCredentialsError("Unable to locate credentials")

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "isfile", refuse)
    ended = bragg("ranks", "memory://bucket/train.job")
    assert ended.exit_code == 6
    assert "cannot read memory://bucket/train.job: Unable to locate credentials" in ended.stderr.splitlines()[0]


def test_without_fsspec_the_hint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(UsageError, match="needs fsspec"), local_files(["s3://bucket/train.job"]):
        pass
