"""Triton programs, recorded on the fake driver: names of specializations, and what launches say of themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from bragg import load
from tests.support import fake_cuda
from tests.support.fake_gpu_runs import SUPPORT, Run, kernels

pytest.importorskip("triton")

START = """
import bragg
import triton
import triton.language as tl
import triton_driver
from fake_cuda import FakeCuda
from triton_driver import Tensor

gpu = FakeCuda()
triton_driver.use(gpu)
A, B = Tensor("float16"), Tensor("float16")

@triton.jit
def copy(source, target, n, BLOCK_N: tl.constexpr):
    tl.store(target + tl.arange(0, BLOCK_N), tl.load(source + tl.arange(0, BLOCK_N)))
"""


Record = Callable[..., Run]


@pytest.fixture
def record(tmp_path: Path, fakes_directory: Path) -> Record:
    """Runs a program under `bragg run` with some options; with `by_itself` the program records itself."""

    def run(body: str, *options: str, by_itself: bool = False) -> Run:
        script = tmp_path / "program.py"
        script.write_text(START + dedent(body) + "\ngpu.synchronize()\n")
        recorder = ["-m", "bragg", "run", "--backend=cuda", "--context=shadow", "--output=out.bragg", *options]
        environ = {**os.environ, **fake_cuda.environment(fakes_directory), "PYTHONPATH": str(SUPPORT)}
        argv = [sys.executable, *([] if by_itself else recorder), str(script)]
        done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        return Run(done.returncode, done.stderr, [load(path) for path in tmp_path.glob("out*.bragg")])

    return run


def test_each_specialization_is_a_kernel_of_its_own(record: Record) -> None:
    run = record(
        """
        with bragg.scope("forward"):
            for _ in range(3): copy[(1,)](A, B, 64, BLOCK_N=64)
            for _ in range(5): copy[(1,)](A, B, 64, BLOCK_N=128, num_warps=8)
        """
    )
    assert kernels(run.main) == {"forward/copy<BN=64 w4 s3 f16>": 3, "forward/copy<BN=128 w8 s3 f16>": 5}, run.talk


def test_sizes_of_the_first_launch_are_kept(record: Record) -> None:
    run = record("for n in (48, 64): copy[(1,)](A, B, n, BLOCK_N=64)")
    assert run.main.run.attributes["copy<BN=64 w4 s3 f16>"]["sizes"] == "n=48 BLOCK_N=64", run.talk


def test_kernels_that_were_loaded_before_the_recording_are_named(record: Record) -> None:
    run = record(
        """
        copy[(1,)](A, B, 64, BLOCK_N=64)
        with bragg.profile("out.bragg", backend="cuda", context="shadow"):
            copy[(1,)](A, B, 64, BLOCK_N=64)
        """,
        by_itself=True,
    )
    assert kernels(run.main) == {"copy<BN=64 w4 s3 f16>": 1}, run.talk


def test_kernels_that_were_only_compiled_are_named_when_they_run(record: Record) -> None:
    run = record(
        """
        copy.warmup(A, B, 64, BLOCK_N=64, grid=(1,))
        copy[(1,)](A, B, 64, BLOCK_N=64)
        """,
    )
    assert kernels(run.main) == {"copy<BN=64 w4 s3 f16>": 1}


def test_names_that_the_program_chose_are_kept(record: Record) -> None:
    run = record(
        """
        @triton.jit(repr=lambda specialization: f"mine_{specialization.constants['BLOCK']}")
        def named(target, BLOCK: tl.constexpr):
            tl.store(target, BLOCK)

        named[(1,)](A, BLOCK=32)
        """,
    )
    assert kernels(run.main) == {"mine_32": 1}


def test_functions_of_one_name_are_told_apart(record: Record) -> None:
    run = record(
        """
        @triton.jit
        def fill(target, n):
            tl.store(target, n + 1)

        fill[(1,)](A, 64)

        @triton.jit
        def fill(target, n):
            tl.store(target, n + 2)

        fill[(1,)](A, 64)
        """
    )
    names = list(kernels(run.main))
    assert names[0] == "fill<w4 s3 f16>"
    assert len(names) == 2
    assert names[1].startswith("fill<w4 s3 f16 #")


METADATA = """
def describe(grid, kernel, arguments):
    return {"flops16": 2 * arguments["n"], "bytes": 4.0 * arguments["n"], "tiles (t)": 1.5, "note": "no number"}

@triton.jit(launch_metadata=describe)
def described(source, target, n, BLOCK: tl.constexpr):
    tl.store(target, tl.load(source))
"""


def test_numbers_of_a_launch_are_metrics_of_its_kernel(record: Record) -> None:
    run = record(
        METADATA
        + """
with bragg.scope("forward"):
    for n in (16, 32, 48): described[(1,)](A, B, n, BLOCK=64)
""",
    )
    assert kernels(run.main) == {"forward/described<BLOCK=64 w4 s3 f16>": 3}, run.talk
    found = {name: run.main.total(name) for name in ("flops16", "bytes", "tiles")}
    assert found == {"flops16": 192, "bytes": 384, "tiles": 4.5}
    assert run.main.own("bytes").dtype == "int64"
    assert run.main.metrics["tiles"].unit == "t"
    assert "note" not in run.main.metrics


def test_lists_of_a_launch_belong_to_its_kernel_too(record: Record) -> None:
    run = record(
        """
        @triton.jit(launch_metadata=lambda *_: {"name": "listed", "tokens": [1, 2, 3], "flops": 1})
        def named(source, target, n):
            tl.store(target, tl.load(source))

        with bragg.scope("forward"):
            for _ in range(2): named[(1,)](A, B, 64)
        """
    )
    profile = run.main
    assert kernels(profile) == {"forward/listed": 2}, run.talk
    kernel = [profile.tree.label(node) for node in range(len(profile.tree))].index("listed")
    assert [profile.own(f"tokens[{index}]")[kernel] for index in range(3)] == [2, 4, 6]


def test_without_launch_metadata_the_functions_are_not_called(record: Record) -> None:
    run = record(METADATA + "described[(1,)](A, B, 16, BLOCK=64)", "--no-launch-metadata")
    assert "bytes" not in run.main.metrics


def test_only_chosen_kernels_are_asked(record: Record) -> None:
    run = record(
        METADATA
        + """
from bragg.record.hooks.triton.launch_metadata import choose_kernels
choose_kernels(lambda name: name != "described" and name != "copy_16")

@triton.jit(launch_metadata=lambda grid, kernel, arguments: {"name": f"copy_{arguments['n']}", "bytes": 1})
def named(source, target, n):
    tl.store(target, tl.load(source))

described[(1,)](A, B, 16, BLOCK=64)
for n in (16, 32): named[(1,)](A, B, n)
"""
    )
    assert kernels(run.main) == {"described<BLOCK=64 w4 s3 f16>": 1, "named<w4 s3 f16>": 1, "copy_32": 1}
    assert run.main.total("bytes") == 1


def test_launches_are_renamed_one_by_one(record: Record) -> None:
    run = record(
        """
        @triton.jit(launch_metadata=lambda grid, kernel, arguments: {"name": f"copy_{arguments['n']}"})
        def named(source, target, n):
            tl.store(target, tl.load(source))

        for n in (16, 32, 32): named[(1,)](A, B, n)
        """,
    )
    assert kernels(run.main) == {"copy_16": 1, "copy_32": 2}


def test_kernels_of_a_metadata_function_belong_to_its_state(record: Record) -> None:
    run = record(
        """
        def count(grid, kernel, arguments):
            copy[(1,)](A, B, 64, BLOCK_N=64)
            inner[(1,)](A, B, 64)
            return {"name": "outer", "flops": 1.0}

        @triton.jit(launch_metadata=lambda *_: {"name": "not asked"})
        def inner(source, target, n):
            tl.store(target, tl.load(source))

        @triton.jit(launch_metadata=count)
        def counted(source, target, n):
            tl.store(target, tl.load(source))

        with bragg.scope("forward"):
            counted[(1,)](A, B, 64)
        """,
    )
    state = "forward/__proton_launch_metadata:counted"
    assert kernels(run.main) == {
        f"{state}/copy<BN=64 w4 s3 f16>": 1,
        f"{state}/inner<w4 s3 f16>": 1,
        "forward/outer": 1,
    }


def test_a_function_that_raises_is_named_once_and_its_launches_go_on(record: Record) -> None:
    run = record(
        """
        def broken(grid, kernel, arguments):
            raise LookupError("no such shape")

        @triton.jit(launch_metadata=broken)
        def counted(source, target, n):
            tl.store(target, tl.load(source))

        for _ in range(4): counted[(1,)](A, B, 64)
        """,
    )
    assert kernels(run.main) == {"counted<w4 s3 f16>": 4}
    assert run.talk.count("the launch metadata of broken is not recorded: LookupError: no such shape") == 1


def test_an_interrupt_in_a_metadata_function_ends_the_program(record: Record) -> None:
    run = record(
        """
        def interrupted(grid, kernel, arguments):
            raise SystemExit(9)

        @triton.jit(launch_metadata=interrupted)
        def counted(source, target, n):
            tl.store(target, tl.load(source))

        copy[(1,)](A, B, 64, BLOCK_N=64)
        counted[(1,)](A, B, 64)
        """,
    )
    assert run.exit_code == 9
    assert kernels(run.main) == {"copy<BN=64 w4 s3 f16>": 1}


def test_hooks_of_others_are_called_and_see_the_same_metadata(record: Record) -> None:
    run = record(
        METADATA
        + """
asked = []
describe_once = describe
def other(metadata):
    asked.append(metadata.get()["tiles (t)"])
hook = triton.knobs.runtime.launch_enter_hook
if hasattr(hook, "add"):
    hook.add(other)
    described[(1,)](A, B, 16, BLOCK=64)
    hook.remove(other)
    assert asked == [1.5], asked
described[(1,)](A, B, 16, BLOCK=64)
""",
    )
    assert run.exit_code == 0, run.talk
    assert run.main.total("tiles") == 1.5 * sum(kernels(run.main).values())


def test_threads_have_metadata_of_their_own(record: Record) -> None:
    run = record(
        METADATA
        + """
import threading
described[(1,)](A, B, 16, BLOCK=64)
def work(n):
    gpu.use_device(0)
    with bragg.scope(f"thread {n}"):
        for _ in range(50): described[(1,)](A, B, n, BLOCK=64)
threads = [threading.Thread(target=work, args=(16 * n,)) for n in range(1, 5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    )
    profile = run.main
    scopes = [node for node in range(len(profile.tree)) if profile.tree.label(node).startswith("thread ")]
    found = {profile.tree.label(node): int(profile.inclusive("bytes")[node]) for node in scopes}
    assert found == {f"thread {16 * n}": 50 * 64 * n for n in range(1, 5)}
