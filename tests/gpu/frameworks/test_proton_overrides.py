"""What upstream's tests of records in kernels ask of Proton, of the drop-in: caches, lines, traces, overrides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bragg import proton

triton = pytest.importorskip("triton", minversion="3.6")
torch = pytest.importorskip("torch")
tl = pytest.importorskip("triton.language")
pl = pytest.importorskip("bragg.proton.language")

pytestmark = pytest.mark.cuda
PROGRAM = Path(__file__).parents[1] / "programs" / "overridden.py"


@pytest.fixture(autouse=True)
def triton_kernels() -> Iterator[None]:
    pl.enable_semantic("triton")
    yield
    pl.disable_semantic("triton")


@triton.jit
def moved(x, y, size: tl.constexpr):
    pl.enter_scope("entire")
    at = tl.arange(0, size)
    with pl.scope("load"):
        value = tl.load(x + at) + 1
    with pl.scope("store"):
        tl.store(y + at, value)
    pl.exit_scope("entire")


@triton.jit
def doubled(x, y, size: tl.constexpr):
    at = tl.arange(0, size)
    with pl.scope("load"):
        value = tl.load(x + at)
    tl.store(y + at, value * 2)


def test_kernels_with_records_and_without_are_both_cached(tmp_path: Path) -> None:
    @triton.jit
    def once(x, y, size: tl.constexpr):
        at = tl.arange(0, size)
        tl.store(y + at, tl.load(x + at))

    x = torch.ones(1, device="cuda")
    device = triton.runtime.driver.active.get_current_device()
    proton.start(str(tmp_path / "x"), backend="instrumentation")
    once[(1,)](x, torch.empty_like(x), 1)
    assert len(once.device_caches[device][0]) == 1
    proton.finalize()
    once[(1,)](x, torch.empty_like(x), 1)
    assert len(once.device_caches[device][0]) == 2


def test_records_have_the_lines_of_their_scopes(tmp_path: Path) -> None:
    x = torch.ones(1024, device="cuda")
    session = proton.start(str(tmp_path / "x"), backend="instrumentation")
    kernel = moved[(1,)](x, torch.empty_like(x), 1024, num_warps=4)
    proton.finalize(session)
    assert kernel.asm["ttir"].count("proton.record start") == 3
    llir = kernel.asm["llir"].splitlines()
    clocks = [
        line.partition("!dbg ")[2].partition(",")[0].strip()
        for line in llir
        if "%clock;" in line or "llvm.readcyclecounter()" in line
    ]
    places = {line.partition(" = ")[0]: line for line in llir if "DILocation(" in line}
    assert clocks
    assert all("line: 0," not in places[clock] for clock in clocks if clock)


def test_a_trace_has_each_scope_of_each_warp_with_the_call_path(tmp_path: Path) -> None:
    x = torch.ones(1024, device="cuda")
    mode = proton.mode.Default(metric_type="cycle", optimizations="time_shift")
    session = proton.start(str(tmp_path / "trace"), data="trace", backend="instrumentation", mode=mode)
    with proton.scope("test"):
        moved[(1,)](x, torch.empty_like(x), 1024, num_warps=4)
        doubled[(1,)](x, torch.empty_like(x), 1024, num_warps=1)
    proton.finalize(session)
    events = json.loads((tmp_path / "trace.chrome_trace").read_text())["traceEvents"]
    assert [each["cat"] for each in events] == ["moved"] * 12 + ["doubled"]
    assert [each["name"] for each in events[:3]] == ["entire", "load", "store"]
    assert all(each["tid"].startswith("warp") for each in events)
    assert events[0]["args"]["call_stack"][-2:] == ["test", "moved"]


def test_sessions_can_pause_and_begin_again(tmp_path: Path) -> None:
    x = torch.ones(1024, device="cuda")
    inside, times = (
        proton.start(str(tmp_path / "inside"), backend="instrumentation"),
        proton.start(str(tmp_path / "times")),
    )
    proton.deactivate(inside)
    proton.deactivate(times)
    proton.activate()
    moved[(1,)](x, torch.empty_like(x), 1024)
    proton.finalize()
    proton.start(str(tmp_path / "again"), backend="instrumentation")
    moved[(1,)](x, torch.empty_like(x), 1024)
    proton.finalize()
    for name in ("inside", "again"):
        (kernel,) = json.loads((tmp_path / f"{name}.hatchet").read_text())[0]["children"]
        assert kernel["frame"]["name"] == "moved"
        assert kernel["children"][0]["metrics"]["cycles"] > 0
    names = [child["frame"]["name"] for child in json.loads((tmp_path / "times.hatchet").read_text())[0]["children"]]
    assert "moved" in names


def test_records_that_an_override_puts_into_a_kernel_are_read(tmp_path: Path) -> None:
    """Triton compiles in place of its own TTGIR what lies in the directory of overrides."""

    def run(**variables: str) -> None:
        environ = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache"), **variables}
        environ |= {"TRITON_ALWAYS_COMPILE": "1", "TRITON_DUMP_DIR": str(tmp_path / "dumped")}
        subprocess.run([sys.executable, str(PROGRAM), str(tmp_path / "x")], env=environ, check=True, timeout=120)

    run(TRITON_KERNEL_DUMP="1")
    (text,) = (tmp_path / "dumped").rglob("add.ttgir")
    for other in text.parent.iterdir():
        if other != text:
            other.unlink()
    lines = text.read_text().splitlines()
    loads = [number for number, line in enumerate(lines) if "tt.load" in line]
    for number in reversed(loads):
        lines.insert(number + 1, f'    proton.record end "load{loads.index(number)}"')
        lines.insert(number, f'    proton.record start "load{loads.index(number)}"')
    text.write_text("\n".join(lines) + "\n")
    run(TRITON_KERNEL_OVERRIDE="1", TRITON_OVERRIDE_DIR=str(tmp_path / "dumped"))
    (kernel,) = json.loads((tmp_path / "x.hatchet").read_text())[0]["children"]
    assert {child["frame"]["name"] for child in kernel["children"]} == {"load0", "load1"}
    assert all(child["metrics"]["cycles"] > 0 for child in kernel["children"])
