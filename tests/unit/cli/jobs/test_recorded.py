from __future__ import annotations

import errno
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.jobs.recorded import as_job, job_line
from bragg.errors import BadFile
from bragg.formats.job.directory import read_job
from bragg.model import Profile
from bragg.record import RecordConfig
from tests.support.jobs import rank_profile
from tests.support.profiles import profile_from_text

WORK = "root\n  k 1ms"
WAIT = "root\n  wait.py:3@wait host=9s"
LAUNCHER = {"pid": 1, "ppid": 0}


def process(text: str, **meta: object) -> Profile:
    return replace(profile_from_text(text), meta=meta)


def rank(number: int, **meta: object) -> Profile:
    return rank_profile(WORK, number, **{"ppid": 1, "command": ["python", "src/train.py"], **meta})


def written(directory: Path, *profiles: Profile) -> list[tuple[Path, Profile]]:
    """The profiles as files, as a run leaves them."""
    found = []
    for number, profile in enumerate(profiles):
        path = directory / f"p{number}.bragg"
        formats.export(profile, "bragg", path)
        found.append((path, profile))
    return found


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def config(directory: Path, name: str = "%s.bragg", **options: object) -> RecordConfig:
    return RecordConfig(output=f"{directory}/{name}", **options)  # type: ignore[arg-type]


def test_ranks_become_a_directory_named_by_their_program(tmp_path: Path) -> None:
    items = written(tmp_path, process(WAIT, **LAUNCHER), rank(0), rank(1))
    job = as_job(items, config(tmp_path), "run")
    assert job is not None
    assert job.directory == tmp_path / "train.job"
    assert names(tmp_path) == ["train.job"]
    assert names(job.directory) == ["job.json", "rank00000.bragg", "rank00001.bragg"]
    assert [(path.name, profile.run.rank) for path, profile in job.profiles] == [
        ("rank00000.bragg", 0),
        ("rank00001.bragg", 1),
    ]
    assert job.notes == []
    line = job_line(job.directory, [path for path, _ in job.profiles], rank(1))
    assert line.startswith(f"Wrote {job.directory}/ (2 ranks, ")
    assert line.endswith(f"; above: rank 1). Next: bragg view {job.directory}")


@pytest.mark.parametrize(
    ("pattern", "directory"),
    [("a", "a.job"), ("a.bragg", "a.job"), ("a.job", "a.job"), ("a/", "a"), ("a/b.bragg", "a/b.job")],
)
def test_directory_has_the_name_that_was_given(tmp_path: Path, pattern: str, directory: str) -> None:
    job = as_job(written(tmp_path, rank(0)), config(tmp_path, pattern), "run")
    assert job is not None
    assert job.directory == tmp_path / directory


@pytest.mark.parametrize("pattern", ["%h-%p.bragg", "x-%r.bragg"])
def test_names_that_tell_ranks_apart_stay(tmp_path: Path, pattern: str) -> None:
    assert as_job(written(tmp_path, rank(0)), config(tmp_path, pattern), "run") is None
    assert names(tmp_path) == ["p0.bragg"]


def test_run_without_ranks_is_no_job(tmp_path: Path) -> None:
    assert as_job(written(tmp_path, process(WORK, **LAUNCHER)), config(tmp_path), "run") is None


def test_launcher_that_did_something_and_strangers_keep_a_profile(tmp_path: Path) -> None:
    items = written(tmp_path, process("root\n  prepare hostx1", **LAUNCHER), process(WAIT, pid=9, ppid=0), rank(0))
    job = as_job(items, config(tmp_path, "job/"), "run")
    assert job is not None
    assert names(job.directory) == ["job.json", "p0.bragg", "p1.bragg", "rank00000.bragg"]
    assert [path.name for path in read_job(job.directory).others] == ["p0.bragg", "p1.bragg"]


def test_process_that_a_rank_started_is_its_helper(tmp_path: Path) -> None:
    helper = rank(0, pid=500, ppid=100, started_ns=1)
    job = as_job(written(tmp_path, helper, rank(0, started_ns=2)), config(tmp_path, "job/"), "run")
    assert job is not None
    (found,) = read_job(job.directory).ranks
    assert (found.pid, found.path.name) == (100, "rank00000.bragg")
    assert [path.name for path in found.helpers] == ["rank00000-p500.bragg"]


def test_two_processes_of_one_rank_are_told(tmp_path: Path) -> None:
    job = as_job(written(tmp_path, rank(0), rank(0, pid=500), rank(1)), config(tmp_path, "job/"), "run")
    assert job is not None
    assert job.notes == ["several processes say that they are rank 0; none of them is compared"]
    assert [each.rank for each in read_job(job.directory).ranks] == [1]


def test_restart_is_in_the_name(tmp_path: Path) -> None:
    restarted = rank(0, pid=500, job={"restarts": 1})
    job = as_job(written(tmp_path, rank(0), restarted), config(tmp_path, "job/"), "run")
    assert job is not None
    assert names(job.directory) == ["job.json", "rank00000.bragg", "rank00000.restart1.bragg"]
    assert [each.pid for each in read_job(job.directory).ranks] == [500]


def test_second_run_gets_a_directory_of_its_own_and_force_replaces_the_first(tmp_path: Path) -> None:
    for run_id, name in (("a", "job"), ("b", "job-2"), ("c", "job-3")):
        job = as_job(written(tmp_path, rank(0, job={"run_id": run_id})), config(tmp_path, "job/"), "run")
        assert job is not None
        assert job.directory == tmp_path / name
    forced = as_job(written(tmp_path, rank(1, job={"run_id": "c"})), config(tmp_path, "job/", force=True), "run")
    assert forced is not None
    assert forced.directory == tmp_path / "job"
    assert names(forced.directory) == ["job.json", "rank00001.bragg"]


def test_ranks_of_several_recorders_meet_in_one_directory(tmp_path: Path) -> None:
    """As with `mpirun bragg run`, or a launcher on each node, where nothing names the run."""
    for run, directory in ((1, "job"), (2, "job-2")):
        for number in range(2):
            item = rank(number, pid=run * 10 + number, job={"run_id": ""})
            job = as_job(written(tmp_path, item), config(tmp_path, "job/"), "run")
            assert job is not None
            assert job.directory == tmp_path / directory
        assert [each.pid for each in read_job(tmp_path / directory).ranks] == [run * 10, run * 10 + 1]


def test_number_that_a_run_gave_twice_is_told(tmp_path: Path) -> None:
    """As with `srun` where each task believes to be the first."""
    for name, n_notes in (("job", 0), ("job-2", 1)):
        job = as_job(written(tmp_path, rank(0, pid=n_notes)), config(tmp_path, "job/"), "run")
        assert job is not None
        assert (job.directory, len(job.notes)) == (tmp_path / name, n_notes)
    assert job.notes == [
        f"{tmp_path}/job has such a rank of this run already; launchers may have given one number twice"
    ]


def test_full_disk_is_said_and_the_profiles_are_a_job_without_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = written(tmp_path, rank(0), rank(1))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "mkstemp", full)
        with pytest.raises(BadFile, match=r"cannot write .*job\.json: No space left on device"):
            as_job(items, config(tmp_path), "run")
    assert [each.rank for each in read_job(tmp_path / "train.job").ranks] == [0, 1]
