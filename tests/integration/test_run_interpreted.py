"""Triton programs under `bragg run` where there is no GPU: bragg's interpreter executes them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bragg.analyze.compiled_kernels import CompiledKernels
from bragg.analyze.report import answered
from bragg.debug.host.driver import has_gpu
from bragg.model import FrameKind, Profile
from bragg.views.text.analysis_text import analysis_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import PLAIN
from tests.support.runs import Recorder, Run

pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(has_gpu(), reason="there is a GPU")

START = """
import bragg
import numpy as np
import triton
import triton.language as tl

def describe(grid, metadata, args):
    return {"name": f"scale_{args['n']}", "flops32": float(args["n"]), "bytes": 8 * args["n"]}

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

@triton.jit(launch_metadata=describe)
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

x, y, out = np.arange(1000, dtype="f4"), np.ones(1000, "f4"), np.zeros(1000, "f4")
"""


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


def record(recorder: Recorder, body: str, **options: Any) -> Run:
    return recorder.program(START + body, **options)


def launches(profile: Profile) -> dict[str, int]:
    """How often each kernel was executed, by the names of the scopes above it and its own."""
    tree, counts = profile.tree, profile.own("host_count")
    shown = (FrameKind.SCOPE, FrameKind.KERNEL)
    found: dict[str, int] = {}
    for node in np.flatnonzero(tree.kind == FrameKind.KERNEL).tolist():
        name = "/".join(tree.label(step) for step in tree.path(node) if tree.kind[step] in shown)
        found[name] = found.get(name, 0) + int(counts[node])
    return found


def test_launches_are_kernels_of_the_call_path_with_the_time_of_the_host(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    run = record(
        recorder,
        """
with bragg.scope("forward"):
    for _ in range(3): add[(4,)](x, y, out, 1000, BLOCK=256)
    scale[(8,)](out, 1000, BLOCK=128, num_warps=8)
assert (out == (x + 1) * 2).all()
""",
    )
    assert run.result.exit_code == 0
    profile = run.main
    assert launches(profile) == {"forward/add<BLOCK=256 w4 s3 f32 !16:n>": 3, "forward/scale_1000": 1}
    kernels = np.flatnonzero(profile.tree.kind == FrameKind.KERNEL)
    assert (profile.inclusive("host_time")[kernels] > 0).all()
    assert not np.isin(profile.tree.parent, kernels).any(), "what the interpreter does is not part of the call path"
    assert "gpu_time" not in profile.metrics
    assert (profile.total("flops32"), profile.total("bytes")) == (1000.0, 8000)
    assert profile.meta["interpreted_launches"] == 4
    assert "(4 launches): not times of a GPU" in next(RunFacts(profile.meta).warnings())
    assert capfd.readouterr().err.count("Triton kernels run in bragg's interpreter on the CPU") == 1


@pytest.mark.parametrize(
    ("body", "is_told"),
    [
        ("bragg.start('own')\nadd[(4,)](x, y, out, 1000, BLOCK=256)", True),
        ("with bragg.profile('own'): add[(4,)](x, y, out, 1000, BLOCK=256)", True),
        ("bragg.start('own')\nraise RuntimeError('another')", False),
    ],
)
def test_a_program_that_records_itself_is_told_how_kernels_run_without_a_gpu(
    tmp_path: Path, body: str, is_told: bool
) -> None:
    (tmp_path / "own.py").write_text(START + body)
    ended = subprocess.run([sys.executable, "own.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    said = (
        "Triton found no GPU. Its kernels run in an interpreter under `bragg run SCRIPT`, "
        "or with `import bragg.debug` inside of `with bragg.debug.interpret():`\n"
    )
    assert (said in ended.stderr) is is_told


def test_kernels_are_compiled_for_a_gpu_that_is_not_there(recorder: Recorder) -> None:
    run = record(
        recorder,
        """
for _ in range(3): add[(4,)](x, y, out, 1000, BLOCK=256)
scale[(8,)](out, 1000, BLOCK=128, num_warps=8)
""",
        gpu_target="sm_80",
    )
    assert run.result.exit_code == 0
    profile = run.main
    add, scale = (CompiledKernels(profile).of(name) for name in ("add<BLOCK=256 w4 s3 f32 !16:n>", "scale_1000"))
    assert add is not None
    assert scale is not None
    assert (add.target, add.num_warps, add.occupancy, scale.num_warps) == ("cuda:80", 4, 1.0, 8)
    assert [(each.is_store, each.compiled_bytes) for each in add.accesses or ()] == [(False, 4), (False, 4), (True, 4)]
    assert (profile.run.target, profile.run.compiled_for_target.keys()) == (
        "sm_80",
        {"add<BLOCK=256 w4 s3 f32 !16:n>", "scale_1000"},
    )
    assert "gpu_time" not in profile.metrics
    compilers = {"Popen.communicate", "ASTSource.make_ir"}
    assert not compilers & set(profile.tree.frames.name), "what compiles is not part of the program"


def test_rules_judge_the_code_of_kernels_that_no_gpu_executed(recorder: Recorder) -> None:
    run = record(
        recorder,
        """
@triton.jit
def sum_columns(x, out, n, width, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        rows = first + tl.arange(0, BLOCK)
        total += tl.load(x + rows * width + column, mask=rows < n, other=0.0)
    tl.store(out + column, tl.sum(total, 0))

for _ in range(2): sum_columns[(16,)](x, out, 62, 16, BLOCK=32, num_warps=1)
sum_columns[(8,)](x, out, 62, 16, BLOCK=32, num_warps=1)
add[(4,)](x, y, out, 992, BLOCK=256)
""",
        gpu_target="sm_90",
    )
    noted = run.main.run.attributes["sum_columns<BLOCK=32 w1 s3 f32 !16:n>"]
    assert (noted["grids"], noted["sizes"]) == ("16x1x1=2 8x1x1=1", "n=62 width=16 BLOCK=32")
    answer = answered(run.main)
    (finding,) = (each for each in answer.worth(0.01) if each.kernel)
    assert (finding.rule, finding.kernel) == ("uncoalesced-access", "sum_columns<BLOCK=32 w1 s3 f32 !16:n>")
    assert finding.message == (
        "sum_columns loads elements that lie width elements apart: 32 B move for each 4 B; expected on sm_90, not timed"
    )
    assert "tl.load(x + rows * width" in run.main.line_text(finding.file, finding.line)
    assert finding.gain is None
    lines = analysis_lines(answer, PLAIN)
    assert lines[0].startswith("Nothing ran on a GPU: bragg's interpreter executed 4 launches on the CPU")
    assert "1. not timed  uncoalesced-access, likely" in lines
    assert "register-spills" in answer.analysis.fine
    assert "small-blocks" in answer.analysis.skipped


def test_hooks_of_the_program_are_called_around_a_launch(recorder: Recorder, capfd: pytest.CaptureFixture[str]) -> None:
    record(
        recorder,
        """
def say(when):
    return lambda metadata: print(when, metadata.get()["name"], out[1])
knobs = triton.knobs.runtime
for hook, when in (("launch_enter_hook", "enter"), ("launch_exit_hook", "exit")):
    if getattr(knobs, hook) is None:  # Triton 3.4
        setattr(knobs, hook, say(when))
    else:
        getattr(knobs, hook).add(say(when))
add[(4,)](x, y, out, 1000, BLOCK=256)
scale[(8,)](out, 1000, BLOCK=128)
""",
    )
    assert capfd.readouterr().out.splitlines() == [
        "enter add 0.0", "exit add 2.0", "enter scale_1000 2.0", "exit scale_1000 4.0",
    ]  # fmt: skip


def test_without_the_interpreter_triton_finds_no_gpu(recorder: Recorder, capfd: pytest.CaptureFixture[str]) -> None:
    run = record(recorder, "add[(4,)](x, y, out, 1000, BLOCK=256)", interpret="off")
    assert run.result.exit_code == 1
    assert "0 active drivers" in capfd.readouterr().err


def test_what_the_interpreter_refuses_is_the_error_of_a_kernel_and_names_the_command_that_explains_it(
    recorder: Recorder,
) -> None:
    run = record(recorder, "add[(4,)](x, y, out, 2000, BLOCK=256)")
    assert run.result.exit_code == 1
    failure = RunFacts(run.main.meta).kernel_failure
    assert "out-of-bounds load of x[1000]" in failure
    assert "this finds where and why: bragg check " in failure


def test_a_driver_that_the_program_brings_launches_its_kernels(recorder: Recorder) -> None:
    support = Path(__file__).parents[1] / "support"
    body = f"""
import sys
sys.path.insert(0, {str(support)!r})
import triton_driver
driver = triton_driver.use()
add[(4,)](triton_driver.Tensor(), triton_driver.Tensor(), triton_driver.Tensor(), 1000, BLOCK=256)
assert len(driver.launched) == 1
"""
    run = record(recorder, body)
    assert run.result.exit_code == 0
    assert "interpreted_launches" not in run.main.meta
    assert record(recorder, body, interpret="on").result.exit_code == 1


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_tensors_that_a_program_asks_for_on_cuda_are_on_the_cpu(recorder: Recorder) -> None:
    run = record(
        recorder,
        """
import torch
a, b, c = torch.rand(1000, device="cuda"), torch.rand(1000).cuda(), torch.empty(1000, device=torch.device("cuda:0"))
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
assert a.is_cuda and b.is_cuda and c.is_cuda
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
add[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](a, b, c, 1000, BLOCK=256)
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) > 0
torch.testing.assert_close(c, a + b)

class Plus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value + 1
    @staticmethod
    def backward(ctx, gradient):
        out = torch.empty(1000, device="cuda")
        add[(4,)](gradient.contiguous(), torch.ones(1000, device="cuda"), out, 1000, BLOCK=256)
        return out

a.requires_grad_()
Plus.apply(a).sum().backward()
assert (a.grad == 2).all()
print(triton.testing.do_bench(lambda: add[(4,)](a, b, c, 1000, BLOCK=256), warmup=1, rep=1))
""",
    )
    assert run.result.exit_code == 0
    assert max(launches(run.main).values()) >= 8
