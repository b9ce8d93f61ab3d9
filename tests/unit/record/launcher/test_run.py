from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import pytest

from bragg.errors import BackendUnavailable, BadFile, NothingRecorded, RecordingFailed
from bragg.model import Profile
from bragg.record import RecordConfig, RunResult, run_target
from bragg.record.backends import cuda
from tests.support.profiles import profile_from_text


class Finisher:
    """Knows what each capture holds: a rank, None for no rank, or an exception."""

    def __init__(self, contents: dict[str, int | Exception | None]) -> None:
        self.contents = contents

    def __call__(self, capture: Path, output: Path, /, *, exit_code: int | None = None) -> Profile:
        content = self.contents[capture.name]
        if isinstance(content, Exception):
            raise content
        output.write_text(capture.name)
        profile = profile_from_text("root 1us")
        profile.meta.update(rank=content, exit_code=exit_code)
        return profile

    def result(self, tmp_path: Path, *, force: bool = False) -> RunResult:
        directory = tmp_path / ".captures"
        directory.mkdir()
        captures = [directory / name for name in self.contents]
        for capture in captures:
            capture.touch()
        return RunResult(
            9, 2, captures, 1.0, [], RecordConfig(output=f"{tmp_path}/%s", force=force), "train", directory
        )


def finished_names(tmp_path: Path, **contents: int | Exception | None) -> dict[str, str]:
    """Content by name of the profiles that come of captures."""
    finisher = Finisher({f"{name.removeprefix('p')}.part": content for name, content in contents.items()})
    finisher.result(tmp_path).finish(finisher)
    return {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}


def test_main_process_gets_the_plain_name(tmp_path: Path) -> None:
    assert finished_names(tmp_path, p9=None, p5=None) == {"train.bragg": "9.part", "train-p5.bragg": "5.part"}
    assert not (tmp_path / ".captures").exists()


def test_ranks_get_theirs_and_their_workers_the_process_id(tmp_path: Path) -> None:
    names = finished_names(tmp_path, p1=None, p2=0, p3=1, p4=0)
    assert names == {
        "train.bragg": "1.part",
        "train-r0.bragg": "2.part",
        "train-r1.bragg": "3.part",
        "train-r0-p4.bragg": "4.part",
    }


def test_empty_capture_gives_no_profile_and_is_counted(tmp_path: Path) -> None:
    finisher = Finisher({"1.part": NothingRecorded("empty"), "2.part": None})
    finished = finisher.result(tmp_path).finish(finisher)
    assert [path.name for path, _ in finished.profiles] == ["train.bragg"]
    assert finished.empty == 1


def test_capture_that_cannot_be_finished_is_kept_and_named_and_the_others_are_finished(tmp_path: Path) -> None:
    finisher = Finisher({"1.part": BadFile("no space"), "2.part": None})
    result = finisher.result(tmp_path)
    with pytest.raises(RecordingFailed, match=r"1\.part: no space") as caught:
        result.finish(finisher)
    assert caught.value.hint.endswith(f"bragg recover {result.directory / '1.part'}")
    assert [path.name for path in result.directory.glob("*.part")] == ["1.part"]
    assert (tmp_path / "train.bragg").read_text() == "2.part"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_that_comes_while_profiles_are_written_leaves_the_captures_and_says_so(
    tmp_path: Path, number: signal.Signals, request: pytest.FixtureRequest
) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # What runs tests may ignore it, as nohup does.
    request.addfinalizer(partial(signal.signal, number, before))

    class Told(Finisher):
        def __call__(self, capture: Path, output: Path, /, *, exit_code: int | None = None) -> Profile:
            signal.raise_signal(number)
            return super().__call__(capture, output, exit_code=exit_code)

    finisher = Told({"1.part": None})
    result = finisher.result(tmp_path)
    with pytest.raises(RecordingFailed, match="interrupted") as caught:
        result.finish(finisher)
    assert caught.value.hint.endswith(f"bragg recover {result.directory / '1.part'}")
    assert signal.getsignal(number) is signal.SIG_DFL


def test_second_run_numbers_its_profiles_and_force_replaces_them(tmp_path: Path) -> None:
    (tmp_path / "train.bragg").write_text("precious")
    finisher = Finisher({"1.part": None})
    [(path, _)] = finisher.result(tmp_path).finish(finisher).profiles
    assert path.name == "train-2.bragg"
    [(path, _)] = finisher.result(tmp_path, force=True).finish(finisher).profiles
    assert (path.name, path.read_text()) == ("train.bragg", "1.part")


def test_missing_gpu_is_told_before_the_program_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_DEVICE_NODES", ())
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    with pytest.raises(BackendUnavailable, match="no NVIDIA GPU"):
        run_target(RecordConfig(backend="cuda", output=str(tmp_path / "x")), ["touch", str(tmp_path / "started")])
    assert list(tmp_path.iterdir()) == []


def test_the_profile_of_the_program_itself_knows_its_exit_code(tmp_path: Path) -> None:
    finisher = Finisher({"9.part": None, "5.part": None})
    (_, program), (_, other) = finisher.result(tmp_path).finish(finisher).profiles
    assert (program.run.exit_code, other.run.exit_code) == (2, None)
