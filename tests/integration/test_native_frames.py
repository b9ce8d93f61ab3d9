"""C and C++ functions between a launch and the interpreter, in one path with the Python frames."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from bragg.model import FrameKind, Profile
from tests.support.fake_gpu_runs import Record, statistics

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler")

# Through ctypes and libffi, which are not part of what is tested.
FOREIGN = ("_ctypes", "libffi")
PROBE = """
namespace probe {
using Callback = int (*)(int);
[[gnu::noinline]] int middle(Callback callback, int value) {
  const int result = callback(value);
  asm volatile("" ::: "memory");
  return result;
}
}
static int hidden(probe::Callback callback, int value) __attribute__((noinline));
static int hidden(probe::Callback callback, int value) {
  const int result = callback(value);
  asm volatile("" ::: "memory");
  return result;
}
extern "C" __attribute__((visibility("default"))) int NAME(probe::Callback callback, int value) {
  const int result = probe::middle(callback, value);
  asm volatile("" ::: "memory");
  return result;
}
extern "C" __attribute__((visibility("default"))) int through_hidden(probe::Callback callback, int value) {
  const int result = hidden(callback, value);
  asm volatile("" ::: "memory");
  return result;
}
"""
PROLOGUE = """
import ctypes
import sys
Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
probe = ctypes.CDLL("{library}")
@Callback
def launch(value):
    gpu.launch("matmul")
    return value
"""
IN_LAUNCH = ["launch", "FakeCuda.launch", "FakeCuda.call", "matmul"]
MIDDLE = "probe::middle(int (*)(int), int)"


def build(directory: Path, *flags: str, function: str = "outer", name: str = "libprobe.so") -> Path:
    """A library whose exported `function` and `through_hidden` call a callback."""
    source, library = directory / "probe.cpp", directory / name
    source.write_text(PROBE)
    options = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,--build-id", f"-DNAME={function}"]
    subprocess.run(["c++", *options, *flags, str(source), "-o", str(library)], check=True)
    return library


def prologue(library: Path) -> str:
    return PROLOGUE.format(library=library)


def paths(profile: Profile) -> list[list[str]]:
    """Names from below the root to each kernel, without ctypes and libffi."""
    tree = profile.tree
    shown = [
        [int(tree.frame[node]) for node in tree.path(int(kernel))[1:]]
        for kernel in (tree.kind == FrameKind.KERNEL).nonzero()[0]
    ]
    return [[tree.frames.name[row] for row in rows if not tree.frames.file[row].startswith(FOREIGN)] for rows in shown]


def record_native(record: Record, library: Path, body: str, **options: object) -> Profile:
    run = record(prologue(library) + body, context="native", **options)
    assert run.exit_code == 0, run.talk
    assert statistics(run)["cut_native_paths"] == 0
    return run.main


def test_functions_stand_between_the_python_frames_that_call_each_other_through_them(
    record: Record, tmp_path: Path
) -> None:
    body = """
def main():
    probe.outer(launch, 1)
main()
gpu.synchronize()
"""
    profile = record_native(record, build(tmp_path), body)
    assert paths(profile) == [["<module>", "main", "outer", MIDDLE, *IN_LAUNCH]]
    frames = profile.tree.frames
    assert frames.file[frames.name.index("outer")] == "libprobe.so"
    assert frames.kind[frames.name.index("outer")] == FrameKind.NATIVE


def test_functions_that_call_back_twice_are_told_twice(record: Record, tmp_path: Path) -> None:
    body = """
@Callback
def again(value):
    return probe.outer(launch, value)
def main():
    probe.outer(again, 1)
    gpu.launch("add")
main()
gpu.synchronize()
"""
    profile = record_native(record, build(tmp_path), body)
    outer = ["outer", MIDDLE]
    assert sorted(paths(profile)) == [
        ["<module>", "main", "FakeCuda.launch", "FakeCuda.call", "add"],
        ["<module>", "main", *outer, "again", *outer, *IN_LAUNCH],
    ]


def test_functions_of_the_interpreter_are_left_out(record: Record, tmp_path: Path) -> None:
    body = """
class Model:
    def __call__(self, value):
        return launch(value)
def main():
    sorted([1], key=Model())
    list(map(launch, [1]))
main()
gpu.synchronize()
"""
    profile = record_native(record, build(tmp_path), body)
    native = {name for path in paths(profile) for name in path}
    assert native == {"<module>", "main", "Model.__call__", *IN_LAUNCH}
    assert ["<module>", "main", "Model.__call__", *IN_LAUNCH] in paths(profile)


def test_functions_are_below_the_scope_that_they_run_in(record: Record, tmp_path: Path) -> None:
    body = """
def main():
    with bragg.scope("step"):
        probe.outer(launch, 1)
        with bragg.scope("inner"):
            probe.outer(launch, 1)
main()
gpu.synchronize()
"""
    profile = record_native(record, build(tmp_path), body)
    below = ["outer", MIDDLE, *IN_LAUNCH]
    begin = ["<module>", "main", "step"]
    assert sorted(paths(profile)) == sorted([[*begin, "main", *below], [*begin, "main", "inner", "main", *below]])


def test_other_contexts_have_no_native_frames(record: Record, tmp_path: Path) -> None:
    body = prologue(build(tmp_path)) + "probe.outer(launch, 1)\ngpu.synchronize()\n"
    assert paths(record(body, context="python").main) == [["<module>", *IN_LAUNCH]]


def test_a_session_beside_a_native_one_has_no_native_frames(record: Record, tmp_path: Path) -> None:
    output = tmp_path / "beside.bragg"
    body = f"""
session = bragg.start({str(output)!r}, backend="cuda", context="python")
probe.outer(launch, 1)
gpu.synchronize()
bragg.stop(session)
"""
    import bragg

    profile = record_native(record, build(tmp_path), body)
    assert paths(profile) == [["<module>", "outer", MIDDLE, *IN_LAUNCH]]
    assert paths(bragg.load(output)) == [["<module>", *IN_LAUNCH]]


def test_a_thread_without_python_has_its_own_functions_below_what_it_inherits(record: Record, tmp_path: Path) -> None:
    body = """
def main():
    probe.outer(launch, 1)
    gpu.launch_on_native_thread("work", 3)
main()
gpu.synchronize()
"""
    profile = record_native(record, build(tmp_path), body, sample_interval=0)  # a sample tells where the thread is, too
    of_python = ["<module>", "main", "outer", MIDDLE, *IN_LAUNCH[:-1]]
    assert sorted(paths(profile)) == [[*of_python, "matmul"], [*of_python, "work"]]
    frames = profile.tree.frames
    work = next(node for node in range(len(profile.tree)) if frames.name[profile.tree.frame[node]] == "work")
    assert frames.kind[profile.tree.frame[profile.tree.parent[work]]] == FrameKind.PYTHON


def test_functions_without_a_symbol_keep_their_offset(record: Record, tmp_path: Path) -> None:
    profile = record_native(record, build(tmp_path, "-s"), "probe.through_hidden(launch, 1)\ngpu.synchronize()\n")
    (path,) = paths(profile)
    assert (path[0], path[1], path[3:]) == ("<module>", "through_hidden", IN_LAUNCH)
    assert path[2].startswith("0x")


def test_names_are_read_after_a_program_was_killed(record: Record, tmp_path: Path) -> None:
    body = """
import os, signal
from flushed import wait_until_flushed
probe.outer(launch, 1)
gpu.synchronize()
wait_until_flushed("matmul", "gpu_count")
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = record(prologue(build(tmp_path)) + body, context="native", flush_interval=50)
    assert run.exit_code == -signal.SIGKILL
    assert paths(run.main) == [["<module>", "outer", MIDDLE, *IN_LAUNCH]]


def test_a_library_that_was_replaced_while_the_program_ran_gives_no_wrong_names(record: Record, tmp_path: Path) -> None:
    first, second = build(tmp_path), build(tmp_path, function="another", name="second.so")
    body = f"""
import _ctypes, os, time
from pathlib import Path
def turns():  # of the thread that looks at what is loaded: it sleeps after each
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text() == "bragg sources\\n":
            fields = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
            return int(fields["voluntary_ctxt_switches"])
    return 0  # it has not begun
probe.outer(launch, 1)
_ctypes.dlclose(probe._handle)
os.replace({str(second)!r}, {str(first)!r})
before, until = turns(), time.monotonic() + 60
while turns() < before + 20 and time.monotonic() < until: time.sleep(0.01)
probe = ctypes.CDLL({str(first)!r})
probe.another(launch, 1)
gpu.synchronize()
"""
    profile = record_native(record, first, body)
    old, new = sorted(paths(profile))
    assert new == ["<module>", "another", MIDDLE, *IN_LAUNCH]
    assert [name[:2] for name in old[1:3]] == ["0x", "0x"]
    missing = [file.get("missing") for file in profile.meta["native_files"].values() if file["path"] == str(first)]
    assert missing == ["the file has changed since the run", None]


def test_other_processors_and_interpreters_say_what_they_do_instead(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bragg.record.inside import recording

    monkeypatch.setattr(recording.core, "_can_unwind", lambda: False)
    assert recording._possible_context("native") == "python"
    assert "x86-64 and aarch64" in capsys.readouterr().err
    monkeypatch.setattr(recording.core, "_walk_available", lambda: False)
    assert recording._possible_context("native") == "shadow"
    assert recording._possible_context("shadow") == "shadow"
