# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Launches: what errors show, and how many programs execute a statement together."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug
from bragg.debug.faults import KernelFault
from bragg.debug.host.launch import execute
from bragg.debug.state import Listeners, machine


@triton.jit
def copy(x, out, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))


def places(error: BaseException) -> list[str]:
    return [Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)]


def test_an_error_of_a_kernel_shows_the_authors_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    with bragg.debug.interpret(), pytest.raises(KernelFault, match=r"test_launch.py:\d+: out-of-bounds load") as caught:
        copy[(2,)](np.zeros(8, "f4"), np.zeros(16, "f4"), N=8)
    assert places(caught.value) == ["test_launch.py", "jit.py", "switch.py", "test_launch.py"]
    monkeypatch.setenv("BRAGG_LOG", "debug")
    with pytest.raises(KernelFault) as caught:
        bragg.debug.interpret(copy)[(2,)](np.zeros(8, "f4"), np.zeros(16, "f4"), N=8)
    assert "load_store.py" in places(caught.value)


def batches(block: int, programs: int) -> list[int]:
    """Programs that load together, batch after batch."""
    found: list[int] = []
    listeners = Listeners(access=[lambda access: found.append(len(machine().rows)) if access.kind == "load" else None])
    array: Any = np.zeros(block * programs, "f4")
    execute(copy, (programs,), (array, array.copy()), {"N": block}, lambda launch: listeners)
    return found


def test_batches_are_small_until_the_size_of_blocks_is_known() -> None:
    assert batches(32, 100) == [4, 96]
    assert batches(32, 100) == [100]
    assert batches(1 << 16, 7) == [4, 3]
    assert batches(1 << 16, 7) == [4, 3]
    assert batches(1 << 17, 5) == [4, 1]
    assert batches(1 << 17, 5) == [2, 2, 1]


def told_of(grid: Any, kernel: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"grid": grid, "value": arguments["number"], "warps": kernel.num_warps}


@triton.jit(launch_metadata=told_of)
def told(number):
    pass


def test_hooks_of_the_program_are_called_around_launches() -> None:
    seen: list[tuple[str, dict[str, Any]]] = []
    runtime = triton.knobs.runtime
    before, after = (lambda told: seen.append(("enter", told.get()))), (lambda told: seen.append(("exit", told.get())))
    runtime.launch_enter_hook.add(before)
    runtime.launch_exit_hook.add(after)
    try:
        with bragg.debug.check():
            told[(1, 3, 2)](6, num_warps=8)
    finally:
        runtime.launch_enter_hook.remove(before)
        runtime.launch_exit_hook.remove(after)
    assert [when for when, _ in seen] == ["enter", "exit"]
    assert {key: seen[0][1][key] for key in ("name", "grid", "value", "warps")} == {
        "name": "told",
        "grid": (1, 3, 2),
        "value": 6,
        "warps": 8,
    }
    with bragg.debug.check():
        told[(1,)](6)
    assert len(seen) == 2
