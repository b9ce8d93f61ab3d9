"""Proton's instrumentation backend by the drop-in, on a real GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bragg import proton

triton = pytest.importorskip("triton", minversion="3.6")
torch = pytest.importorskip("torch")
tl = pytest.importorskip("triton.language")
pl = pytest.importorskip("bragg.proton.language")

pytestmark = pytest.mark.cuda


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):  # noqa: N803
    with pl.scope("kernel"):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        with pl.scope("loads"):
            left = tl.load(x + at, mask=at < n)
            right = tl.load(y + at, mask=at < n)
        tl.store(out + at, left + right, mask=at < n)


@pytest.fixture(autouse=True)
def triton_kernels() -> Any:
    pl.enable_semantic("triton")
    yield
    pl.disable_semantic("triton")


def measured(tmp_path: Path, data: str, mode: str, blocks: int = 8, warps: int = 2) -> Any:
    x, y = torch.rand(blocks * 256, device="cuda"), torch.rand(blocks * 256, device="cuda")
    out = torch.empty_like(x)
    session = proton.start(str(tmp_path / "inside"), backend="instrumentation", data=data, mode=mode)
    with proton.scope("step"):
        for _ in range(3):
            add[(blocks,)](x, y, out, x.numel(), BLOCK=256, num_warps=warps)
    proton.finalize(session)
    assert torch.equal(out, x + y)
    suffix = "chrome_trace" if data == "trace" else "hatchet"
    return json.loads((tmp_path / f"inside.{suffix}").read_text())


@pytest.mark.parametrize("mode", ["default", "default:buffer_type=global", "default:optimizations=clock32,time_shift"])
def test_the_tree_has_cycles_of_nested_scopes(tmp_path: Path, mode: str) -> None:
    root, devices = measured(tmp_path, "tree", mode)
    print(mode, json.dumps(root["children"]))
    (step,) = root["children"]
    (kernel,) = step["children"]
    (outer,) = kernel["children"]
    (inner,) = outer["children"]
    assert [each["frame"]["name"] for each in (step, kernel, outer, inner)] == ["step", "add", "kernel", "loads"]
    assert 0 < inner["metrics"]["cycles"] < outer["metrics"]["cycles"]
    assert outer["metrics"]["normalized_cycles"] == pytest.approx(outer["metrics"]["cycles"] / (8 * 2))
    assert devices["CUDA"]["0"]["num_sms"] > 1


def test_the_trace_has_an_event_for_each_warp_and_scope(tmp_path: Path) -> None:
    events = measured(tmp_path, "trace", "default")["traceEvents"]
    assert len(events) == 3 * 8 * 2 * 2
    assert [each["name"] for each in events[:2]] == ["kernel", "loads"]
    assert {each["cat"] for each in events} == {"add"}
    assert {each["pid"].rpartition("CTA")[2] for each in events} == {str(block) for block in range(8)}
    assert all(each["dur"] > 0 for each in events)
    assert events[0]["args"]["call_stack"] == ["ROOT", "step", "add"]


def test_warps_can_be_chosen(tmp_path: Path) -> None:
    mode = "default:sampling_strategy=selective:sampling_options=0,2"
    events = measured(tmp_path, "trace", mode, warps=4)["traceEvents"]
    assert {each["tid"].split()[1] for each in events} == {"0", "2"}


def test_kernels_are_compiled_anew_with_records_and_stay_as_they_were_without(tmp_path: Path) -> None:
    x = torch.rand(256, device="cuda")
    plain = add[(1,)](x, x, torch.empty_like(x), 256, BLOCK=256, num_warps=1)
    proton.start(str(tmp_path / "x"), backend="instrumentation")
    timed = add[(1,)](x, x, torch.empty_like(x), 256, BLOCK=256, num_warps=1)
    with pytest.raises(RuntimeError, match="Only one instance"):
        proton.start(str(tmp_path / "y"), backend="instrumentation")
    proton.finalize()
    after = add[(1,)](x, x, torch.empty_like(x), 256, BLOCK=256, num_warps=1)
    assert "proton.record" in timed.asm["ttir"]
    assert "proton.record" not in plain.asm["ttir"]
    assert after is plain
