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
    ((device, facts),) = devices["CUDA"].items()
    assert device == str(torch.cuda.current_device())  # what ran before in this process may have chosen another one
    assert facts["num_sms"] > 1


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


def named(grid: Any, metadata: Any, args: dict[str, Any]) -> dict[str, str]:
    return {"name": f"sum_{args['BLOCK']}"}


@triton.jit(launch_metadata=named)
def tuned_sum(x, out, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with pl.scope("load"):
        value = tl.load(x + at, mask=at < n)
    tl.store(out + at, value + value, mask=at < n)


@triton.jit
def unmarked(x, out, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))


@triton.jit
def looping(x, out, turns, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    for turn in range(turns):
        pl.enter_scope("turn")
        tl.store(out + at, tl.load(x + at) + turn)
        pl.exit_scope("turn")


@pytest.mark.parametrize("mode", ["default", "default:metric_type=cycle:buffer_size=4096", "mma", None])
def test_a_session_without_launches_ends(tmp_path: Path, mode: str | None) -> None:
    proton.finalize(proton.start(str(tmp_path / "empty"), backend="instrumentation", mode=mode))
    assert json.loads((tmp_path / "empty.hatchet").read_text())[0]["children"] == []


def test_the_records_of_a_launch_are_handed_out_with_their_header(tmp_path: Path) -> None:
    hook = proton.hooks.InstrumentationHook
    hook.enable_host_buffer = True
    session = proton.start(str(tmp_path / "x"), backend="instrumentation")
    try:
        x = torch.rand(512, device="cuda")
        add[(2,)](x, x, torch.empty_like(x), 512, BLOCK=256, num_warps=2)
        words = hook.host_buffer.numpy().view("<u4")
        payload = words[words[3] // 4 :]
        assert (words[6], words[7], words[9]) == (2, 2, 2)  # blocks, warps, warps with records
        assert payload[0] == 0xDEADBEEF
        records = payload[10 + 2 :].reshape(-1, 2)[:4]  # of the first warp: two scopes, one in the other
        assert [int(tag) >> 31 for tag, _ in records] == [0, 0, 1, 1]
        clocks = [(int(tag) & 0x7FF) << 32 | int(low) for tag, low in records]
        assert clocks == sorted(clocks)
        unmarked[(1,)](x, torch.empty_like(x), BLOCK=256)
        assert hook.host_buffer is not None
    finally:
        hook.enable_host_buffer = False
        proton.finalize(session)


def test_each_configuration_that_a_tuner_tries_has_its_name(tmp_path: Path) -> None:
    tuned = triton.autotune([triton.Config({"BLOCK": size}, num_warps=1) for size in (256, 512)], ["n"])(tuned_sum)
    x = torch.rand(1024, device="cuda")
    session = proton.start(str(tmp_path / "tuned"), backend="instrumentation", hook="triton")
    tuned[lambda meta: (1024 // meta["BLOCK"],)](x, torch.empty_like(x), 1024)
    proton.finalize(session)
    root = json.loads((tmp_path / "tuned.hatchet").read_text())[0]
    assert {"sum_256", "sum_512"} <= {child["frame"]["name"] for child in root["children"]}


def test_a_session_of_times_records_beside_one_inside_kernels(tmp_path: Path) -> None:
    x = torch.rand(1024, device="cuda")
    proton.start(str(tmp_path / "inside"), backend="instrumentation")
    proton.start(str(tmp_path / "times"))
    looping[(1,)](x, torch.empty_like(x), 3, BLOCK=1024)
    proton.finalize()
    inside, times = (json.loads((tmp_path / f"{name}.hatchet").read_text())[0] for name in ("inside", "times"))
    (kernel,) = inside["children"]
    assert kernel["children"][0]["metrics"]["cycles"] > 0
    (kernel,) = (child for child in times["children"] if child["frame"]["name"] == "looping")
    assert kernel["metrics"]["time (ns)"] > 0


def test_of_a_long_loop_the_last_turns_are_kept(tmp_path: Path) -> None:
    x = torch.rand(1024, device="cuda")
    mode = "default:buffer_size=1024:buffer_type=global"
    session = proton.start(str(tmp_path / "long"), backend="instrumentation", data="trace", mode=mode)
    looping[(1,)](x, torch.empty_like(x), 1000, BLOCK=1024, num_warps=4)
    proton.finalize(session)
    events = json.loads((tmp_path / "long.chrome_trace").read_text())["traceEvents"]
    by_warp = [sum(each["tid"] == tid for each in events) for tid in sorted({each["tid"] for each in events})]
    assert by_warp == [1024 // 4 // 16] * 4
