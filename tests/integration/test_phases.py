"""Phases of a recording of this process, on the CPU."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

import bragg
from bragg.errors import NothingRecorded, RecordingFailed, UsageError
from bragg.model import Profile
from tests.support.runs import FLUSHED, entered, names_of

pytestmark = pytest.mark.usefixtures("here")


def start(name: str = "x", **options: object) -> bragg.Session:
    return bragg.start(name, backend="cpu", context="shadow", **options)  # type: ignore[arg-type]


def enter(name: str) -> None:
    with bragg.scope(name):
        pass


def when(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def captures(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_profile_is_there_while_the_session_goes_on(here: Path) -> None:
    session = start()
    enter("a")
    first = session.profile()
    enter("a")
    assert (entered(first, "a"), entered(session.profile(), "a")) == (1, 2)
    assert first.meta["capture"]["complete"]
    enter("b")
    stopped = session.stop()
    assert session.profile() is stopped
    assert (entered(stopped, "a"), entered(stopped, "b")) == (2, 1)


def test_profile_of_nothing_is_an_error_and_the_session_goes_on() -> None:
    session = start()
    with pytest.raises(NothingRecorded):
        session.profile()
    enter("a")
    assert entered(session.stop(), "a") == 1


def test_each_phase_has_what_ran_in_it(here: Path) -> None:
    session = start()
    for phase in range(3):
        assert session.phase == phase
        for _ in range(phase + 1):
            enter("step")
        if phase < 2:
            assert session.advance_phase() == phase + 1
    assert [entered(session.phase_profile(phase), "step") for phase in range(3)] == [1, 2, 3]
    assert entered(session.profile(), "step") == 6
    assert session.profile().meta["phases"] == 3
    assert entered(session.stop(), "step") == 6


def test_session_with_phases_writes_a_file_for_each(here: Path) -> None:
    session = start()
    enter("a")
    session.advance_phase()
    session.advance_phase()
    enter("b")
    session.stop()
    assert captures(here) == {"x.part_0.bragg", "x.part_2.bragg"}
    assert session.paths == {0: here / "x.part_0.bragg", 2: here / "x.part_2.bragg"}
    assert names_of(bragg.load(here / "x.part_2.bragg"), bragg.model.FrameKind.SCOPE) == {"b"}


def test_stop_without_saving_leaves_no_file(here: Path) -> None:
    session = start()
    enter("a")
    session.advance_phase()
    enter("a")
    assert entered(session.stop(save=False), "a") == 2
    assert captures(here) == set()


def test_scope_that_is_open_across_phases_is_counted_where_it_ends() -> None:
    session = start()
    with bragg.scope("outer"):
        enter("inner")
        time.sleep(0.05)
        began = time.perf_counter_ns()
        session.advance_phase()
        enter("inner")
        time.sleep(0.01)
    ended = time.perf_counter_ns()
    before, after = session.phase_profile(0), session.phase_profile(1)
    assert [(entered(phase, "outer"), entered(phase, "inner")) for phase in (before, after)] == [(0, 1), (1, 1)]
    assert before.inclusive("host_time")[0] == before.own("host_time").sum()
    assert 10_000_000 <= after.inclusive("host_time")[0] <= ended - began
    session.stop(save=False)


def test_scope_that_is_open_while_twenty_phases_pass_is_not_lost_beside_other_sessions() -> None:
    session, other = start("x"), start("other")
    with bragg.scope("outer"):
        for _ in range(20):
            session.advance_phase()
        inner = start("inner")
    enter("after")
    assert entered(session.stop(save=False), "outer") == entered(other.stop(save=False), "outer") == 1
    assert names_of(inner.stop(save=False), bragg.model.FrameKind.SCOPE) == {"after"}


def test_pause_goes_on_in_the_next_phase() -> None:
    session = start()
    enter("a")
    session.deactivate(flush=False)
    session.advance_phase()
    assert not session.active
    enter("pause")
    session.activate()
    enter("b")
    assert names_of(session.stop(save=False), bragg.model.FrameKind.SCOPE) == {"a", "b"}


def test_cleared_phases_are_gone_and_stay_complete(here: Path) -> None:
    session = start()
    for _ in range(4):
        enter("step")
        session.advance_phase()
    enter("step")
    session.clear(1)
    session.clear(1)
    assert session.phases == [0, 2, 3, 4]
    session.clear(2, up_to=True)
    assert session.phases == [3, 4]
    assert session.is_phase_complete(0)
    with pytest.raises(UsageError, match="phase 1 was cleared"):
        session.phase_profile(1)
    assert entered(session.profile(), "step") == 2
    session.clear()
    assert session.phases == [4]
    assert captures(here) == {"x.part_4.bragg.part"}
    assert entered(session.stop(), "step") == 1


def test_restarted_phase_has_forgotten_what_was_before(here: Path) -> None:
    session = start()
    enter("warm-up")
    session.restart_phase()
    enter("work")
    assert session.phase == 0
    assert names_of(session.stop(), bragg.model.FrameKind.SCOPE) == {"work"}
    assert captures(here) == {"x.bragg"}


def test_misuse_of_phases_is_told_in_one_line_and_the_session_goes_on() -> None:
    session = start()
    enter("a")
    session.advance_phase()
    for misuse in (
        lambda: session.phase_profile(2),
        lambda: session.is_phase_complete(-1),
        lambda: session.clear(7),
        lambda: session.clear(1),
    ):
        with pytest.raises(UsageError) as raised:
            misuse()
        assert len(str(raised.value).splitlines()) == 1
    session.stop(save=False)
    for late in (session.advance_phase, session.restart_phase, session.clear, lambda: session.phase_profile(0)):
        with pytest.raises(UsageError, match="was stopped"):
            late()


def test_phase_that_cannot_be_written_leaves_the_one_before_recording(here: Path) -> None:
    (here / "inside").mkdir()
    session = start("inside/x")
    enter("a")
    (here / "inside").rename(here / "moved")
    (here / "inside").touch()
    with pytest.raises(RecordingFailed, match="phase 1 cannot be written"):
        session.advance_phase()
    (here / "inside").unlink()
    (here / "moved").rename(here / "inside")
    enter("a")
    assert (session.phase, entered(session.stop(), "a")) == (0, 2)


def test_missing_directory_is_created_at_the_start(here: Path) -> None:
    session = start("new/deeper/x")
    assert (here / "new" / "deeper").is_dir()
    enter("a")
    session.stop()
    assert session.path == here / "new" / "deeper" / "x.bragg"


def test_hundreds_of_phases_leave_no_descriptors_and_have_every_scope_once() -> None:
    session = start()
    before = len(list(Path("/proc/self/fd").iterdir()))
    counted = 0
    for _ in range(10):
        for _ in range(30):
            enter("step")
            session.advance_phase()
        counted += entered(session.profile(), "step")
        session.clear()
    assert (session.phase, counted) == (300, 300)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
    enter("last")
    assert entered(session.stop(), "last") == 1


def test_phases_advance_while_threads_work() -> None:
    session, whole = start("x"), start("whole")

    def work(number: int) -> None:
        for _ in range(3000):
            with bragg.scope(f"thread {number}"):
                enter("inner")

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        session.advance_phase()
        time.sleep(0.002)
    phases = session.stop(save=False)
    assert [entered(phases, f"thread {number}") for number in range(4)] == [3000] * 4
    assert entered(phases, "inner") == entered(whole.stop(save=False), "inner") == 12000


def test_complete_phases_are_handed_out_in_order_and_the_last_at_the_end(here: Path) -> None:
    session = start()
    got: list[tuple[int, int]] = []
    session.write_phases(lambda phase, profile: got.append((phase, entered(profile, "step"))))
    for _ in range(5):
        enter("step")
        session.advance_phase()
    session.advance_phase()
    enter("step")
    when(lambda: len(got) == 5)
    assert session.phases[-1] == 6
    session.stop()
    assert got == [(phase, 1) for phase in (0, 1, 2, 3, 4, 6)]
    assert captures(here) == set()


def test_phase_whose_writing_fails_is_offered_again(capfd: pytest.CaptureFixture[str]) -> None:
    session = start()
    tries: list[int] = []

    def write(phase: int, _profile: Profile) -> None:
        tries.append(phase)
        if len(tries) == 1:
            raise ValueError("full")

    session.write_phases(write)
    enter("a")
    session.advance_phase()
    when(lambda: len(tries) == 2)
    enter("a")
    session.stop()
    assert tries == [0, 0, 1]
    assert "a phase was not written: full" in capfd.readouterr().err


def test_rotation_writes_files_that_can_be_read_while_the_session_goes_on(here: Path) -> None:
    session = start(rotate_s=0.1, rotate_keep=3)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            enter("step")
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    when(lambda: session.phase >= 6 and len(session.paths) == 3)
    with session._taking:  # The oldest file goes as the next one comes.
        written = dict(session.paths)
        assert all(bragg.load(path).meta["capture"]["complete"] for path in written.values())
    stop.set()
    thread.join()
    session.stop()
    assert len(session.paths) == 3
    assert captures(here) == {path.name for path in session.paths.values()}
    assert min(session.paths) >= min(written)


def test_killed_program_leaves_complete_phases_and_the_current_capture(here: Path) -> None:
    program = """
        import bragg, os, time
        session = bragg.start("x", backend="cpu", context="shadow", flush_interval_ms=20, rotate_s=0.2)
        while len(session.paths) < 3:
            with bragg.scope("step"): time.sleep(0.001)
        with session._lock:  # No phase begins now.
            with bragg.scope("last"): pass
            wait_until_flushed("last")
            print(*(path.name for path in session.paths.values()), flush=True)
            os.kill(os.getpid(), 9)
    """
    killed = subprocess.run(
        [sys.executable, "-c", FLUSHED + dedent(program)], check=False, stdout=subprocess.PIPE, text=True
    )
    assert killed.returncode == -9
    written = set(killed.stdout.split())
    assert len(written) >= 3
    whole = {path.name for path in here.iterdir() if path.suffix in {".bragg", ".part"}}  # Not: a phase half saved.
    profiles = {name: bragg.load(here / name) for name in whole}
    assert written <= set(profiles)
    assert all(entered(profile, "step") for name, profile in profiles.items() if name.endswith(".bragg"))
    assert sum(entered(profile, "last") for name, profile in profiles.items() if name.endswith(".part")) == 1
