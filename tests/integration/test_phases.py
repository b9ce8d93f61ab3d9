"""Phases of a recording, on the CPU in this process and on the fake GPU in one of its own."""

from __future__ import annotations

import os
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
from tests.support import fake_cuda
from tests.support.runs import FLUSHED, entered, names_of

SUPPORT = Path(fake_cuda.__file__).parent
Run = Callable[..., list[str]]

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def on_gpu(tmp_path: Path, fakes_directory: Path) -> Run:
    """Runs a program with a session on `gpu`, a fake one; gives the lines that it printed."""

    def run(body: str, **settings: object) -> list[str]:
        start = """
        import time, threading, bragg
        from fake_cuda import Copy, FakeCuda
        gpu = FakeCuda()
        def counts(profile):
            nodes = [node for node in range(len(profile.tree)) if profile.own("gpu_count")[node]]
            return {profile.tree.label(node): int(profile.own("gpu_count")[node]) for node in nodes}
        def when(condition):
            until = time.monotonic() + 60
            while not condition(): assert time.monotonic() < until; time.sleep(0.005)
        """
        script = tmp_path / "program.py"
        script.write_text(dedent(start) + dedent(body))
        environ = {**os.environ, **fake_cuda.environment(fakes_directory, settings), "PYTHONPATH": str(SUPPORT)}
        done = subprocess.run(
            [sys.executable, script], env=environ, capture_output=True, text=True, timeout=100, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return run


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
            os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", FLUSHED + dedent(program)], check=False, capture_output=True)
    profiles = {name: bragg.load(here / name) for name in captures(here)}
    assert {"x.part_0.bragg", "x.part_1.bragg", "x.part_2.bragg"} <= set(profiles)
    assert all(entered(profile, "step") for name, profile in profiles.items() if name.endswith(".bragg"))
    assert sum(entered(profile, "last") for name, profile in profiles.items() if name.endswith(".part")) == 1


def test_kernel_belongs_to_the_phase_it_was_launched_in(on_gpu: Run) -> None:
    printed = on_gpu(
        """
        gpu.set_kernel_ns("slow", 300_000_000)
        session = bragg.start("x", backend="cuda", context="shadow")
        with bragg.scope("first"): gpu.launch("slow")
        session.advance_phase()
        with bragg.scope("second"): gpu.launch("fast")
        print(session.is_phase_complete(0))
        gpu.synchronize()
        when(lambda: session.is_phase_complete(0))
        print(counts(session.phase_profile(0)), counts(session.phase_profile(1)))
        session.stop()
        """
    )
    assert printed == ["False", "{'slow': 1} {'fast': 1}"]


def test_waiting_for_the_gpu_completes_earlier_phases_and_not_the_current_one(on_gpu: Run) -> None:
    printed = on_gpu(
        """
        session = bragg.start("x", backend="cuda", context="shadow")
        stream = gpu.stream()
        with gpu.capture(stream) as graph: gpu.launch("node", stream); gpu.launch("node", stream)
        executable = gpu.instantiate(graph)
        for _ in range(3): gpu.launch_graph(executable, stream)
        gpu.launch("k")
        session.advance_phase()
        gpu.launch_graph(executable, stream)
        session.deactivate()
        print([session.is_phase_complete(phase) for phase in (0, 1)])
        print([counts(session.phase_profile(phase)) for phase in (0, 1)] == [{"node": 6, "k": 1}, {"node": 2}])
        session.stop()
        """
    )
    assert printed == ["[True, False]", "True"]


def test_phases_of_graphs_and_copies_complete_without_waiting_for_the_gpu(on_gpu: Run) -> None:
    printed = on_gpu(
        """
        session = bragg.start("x", backend="cuda", context="shadow")
        stream = gpu.stream()
        with gpu.capture(stream) as graph:
            for _ in range(50): gpu.launch("node", stream)
        executable = gpu.instantiate(graph)
        session.restart_phase()
        for _ in range(40):
            gpu.launch_graph(executable, stream)
            gpu.copy(Copy.HOST_TO_DEVICE, 64, stream)
            session.advance_phase()
        when(lambda: session.is_phase_complete(39))
        print([counts(session.phase_profile(phase)) for phase in range(40)] == [{'node': 50, 'copy HtoD': 1}] * 40)
        session.stop()
        """,
        CLOCK="real",
    )
    assert printed == ["True"]


def test_lost_records_hold_up_no_program_that_advances(on_gpu: Run) -> None:
    printed = on_gpu(
        """
        session = bragg.start("x", backend="cuda", context="shadow")
        began = time.monotonic()
        for _ in range(60):
            gpu.launch_many("k", 100)
            session.advance_phase()
        print(time.monotonic() - began < 10, counts(session.stop(save=False)))
        """,
        CLOCK="real",
        DROP_EVERY=10,
    )
    assert printed == ["True {'k': 5400}"]


@pytest.mark.parametrize("data", ["tree", "trace"])
def test_threads_launch_while_phases_advance(on_gpu: Run, data: str) -> None:
    printed = on_gpu(
        f"""
        phases = bragg.start("x", backend="cuda", context="shadow", data="{data}")
        whole = bragg.start("whole", backend="cuda", context="shadow", data="{data}")
        def work(number):
            gpu.use_device(0)
            stream = gpu.stream()
            for step in range(30):
                with bragg.scope(f"thread {{number}}"): gpu.launch_many(f"k{{number}}", 50, stream)
                time.sleep(0.001)
        threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
        for thread in threads: thread.start()
        while any(thread.is_alive() for thread in threads): phases.advance_phase(); time.sleep(0.001)
        united, one = phases.profile(), whole.profile()
        print(counts(united) == counts(one) == {{f"k{{number}}": 1500 for number in range(4)}})
        print(len(united.slices) == len(one.slices), len(united.tracks) == len(one.tracks))
        print(len(united.flows) == len(one.flows))
        phases.stop(save=False); whole.stop(save=False)
        """
    )
    assert printed == ["True", "True True", "True"]
