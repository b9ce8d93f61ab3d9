"""However a kernel is launched, `bragg check` executes it: every way here has an access outside of its array."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked_bragg import forked_bragg

pytest.importorskip("triton")

HEAD = """
import multiprocessing, os, subprocess, sys, threading
import numpy as np
import triton
import triton.language as tl

"""
KERNEL = """
@triton.jit
def {name}(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, i.to(tl.float32), mask=i < n)
"""
LAUNCH = "[(1,)](np.zeros(16, 'f4'), 17, B=32)"
WAYS = {
    "warmed": "k.warmup(x, 17, B=32, grid=(1,))[(1, 1, 1)](x, 17, 32)",
    "without_constants": "k.warmup(x, 17, B=32, grid=(1,))[(1, 1, 1)](x, 17)",
    "compiled": (
        "source = triton.compiler.ASTSource(k, {'x': '*fp32', 'n': 'i32', 'B': 'constexpr'}, {'B': 32})\n"
        "handle = triton.compile(source, target=triton.runtime.driver.active.get_current_target())\n"
        "handle[(1, 1, 1)](x, 17, 32)"
    ),
    "handle_run": (
        "c = k.warmup(x, 17, B=32, grid=(1,))\n"
        "c._init_handles()\n"
        "c.run(1, 1, 1, 0, c.function, c.packed_metadata, None, None, None, x, 17, 32)"
    ),
    "run": "k.run(x, 17, B=32, grid=(1,), warmup=False)",
    "nested": (
        "tuned = triton.autotune([triton.Config({'B': 32})], key=[])(k)\n"
        "tuned = triton.heuristics({'n': lambda given: 17})(tuned)\n"
        "triton.heuristics({})(tuned)[(1,)](x)"
    ),
    "thread": "t = threading.Thread(target=lambda: k[(1,)](x, 17, B=32)); t.start(); t.join()",
    "forked": (
        "p = multiprocessing.get_context('fork').Process(target=lambda: k[(1,)](x, 17, B=32)); p.start(); p.join()"
    ),
    "killed": ("if os.fork() == 0:\n    k[(1,)](x, 17, B=32)\n    os.kill(os.getpid(), 9)\nos.wait()"),
}
OTHER_PROCESS = """
subprocess.run([sys.executable, "other.py"], check=True)
"""


def run_check(directory: Path, text: str) -> tuple[int, dict[str, Any], str]:
    (directory / "program.py").write_text(text)
    done = forked_bragg("check", "--json", "program.py", directory=directory)
    return done.returncode, json.loads(done.stdout.splitlines()[-1]), done.stdout + done.stderr


def found_in(report: dict[str, Any]) -> set[str]:
    return {finding["kernel"] for finding in report["findings"] if finding["rule"] == "out-of-bounds"}


def test_every_way_to_launch_is_executed(tmp_path: Path) -> None:
    parts = [f"{KERNEL.format(name=name)}\nk, x = {name}, np.zeros(16, 'f4')\n{way}\n" for name, way in WAYS.items()]
    # NumPy's arrays do not say their addresses as Triton's own code asks for them: when it compiles.
    array = "class Array(np.ndarray):\n    def data_ptr(self): return self.ctypes.data\n"
    parts = [part.replace("np.zeros(16, 'f4')", "np.zeros(16, 'f4').view(Array)") for part in parts]
    (tmp_path / "other.py").write_text(
        f"{HEAD}{KERNEL.format(name='spawned')}\nspawned[(1,)](np.zeros(16, 'f4'), 17, B=32)"
    )
    code, report, output = run_check(tmp_path, "".join([HEAD, array, *parts, OTHER_PROCESS]))
    assert code == 3, output
    assert found_in(report) == {*WAYS, "spawned"}, output
    assert report["launches"] == len(WAYS) + 1


def test_a_program_that_switches_to_tritons_interpreter_is_executed_by_the_engine(tmp_path: Path) -> None:
    text = f"{HEAD}\nos.environ['TRITON_INTERPRET'] = '1'\n{KERNEL.format(name='k')}\nk{LAUNCH}"
    code, report, output = run_check(tmp_path, text)
    assert (code, found_in(report)) == (3, {"k"}), output


def test_what_has_no_source_is_refused(tmp_path: Path) -> None:
    text = f"""{HEAD}{KERNEL.format(name="k")}
x = np.zeros(16, 'f4')
source = triton.compiler.ASTSource(k, {{'x': '*fp32', 'n': 'i32', 'B': 'constexpr'}}, {{'B': 32}})
target = triton.runtime.driver.active.get_current_target()
open("k.ttir", "w").write(triton.compile(source, target=target).asm["ttir"])
triton.compile("k.ttir", target=target)[(1, 1, 1)](x, 17, 32)
"""
    code, _, output = run_check(tmp_path, text)
    assert code == 2
    assert "has no Python source and cannot be executed" in output


@pytest.mark.parametrize("text", ["print('no kernel')", KERNEL.format(name="never_launched")])
def test_a_program_that_launches_nothing_is_not_called_clean(tmp_path: Path, text: str) -> None:
    code, report, output = run_check(tmp_path, HEAD + text)
    assert (code, report["launches"]) == (7, 0)
    assert "nothing was checked" in output
    assert ("never_launched (" in output) == ("never_launched" in text)


TORCH = """
import torch
from torch.library import triton_op, wrap_triton

@triton_op("bragg_tests::fill", mutates_args={"x"})
def fill(x: torch.Tensor) -> None:
    wrap_triton(operator)[(1,)](x, 17, B=32)

fill(torch.zeros(16))

@torch.compile
def compiled(x):
    in_compiled[(1,)](x, 17, B=32)
    return torch.softmax(x, 0) + 1

print(compiled(torch.zeros(16, device="cuda")).sum().item())

x, graph = torch.zeros(16, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured[(1,)](x, 17, B=32)
    doubled = x * 2
    x.add_(1)
assert x.sum() == 0
graph.replay()
assert (x.sum().item(), doubled.sum().item()) == (136, 240)

def from_thread():
    in_thread[(1,)](torch.zeros(16, device="cuda"), 17, B=32)

t = threading.Thread(target=from_thread); t.start(); t.join()
"""
TORCH_KERNELS = ("operator", "in_compiled", "captured", "in_thread")


@pytest.mark.slow
def test_what_pytorch_launches_is_executed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code, report, output = run_check(
        tmp_path, "".join([HEAD, *(KERNEL.format(name=one) for one in TORCH_KERNELS), TORCH])
    )
    assert code == 3, output
    assert found_in(report) == set(TORCH_KERNELS), output
    assert "17.0" in output
    assert report["launches"] == len(TORCH_KERNELS) + 1  # The softmax that PyTorch's compiler writes.


COMPILED = """
import torch, triton
import triton.language as tl

@triton.jit
def reads_too_far(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, v, mask=i < N - 1)

@torch.compile
def launches(x):
    y = torch.zeros_like(x)
    reads_too_far[(1,)](x, y, 16)
    return y

@torch.compile
def takes(x, i):
    scaled = x * 2
    return scaled[i] + 1

launches(torch.ones(15))
takes(torch.ones(8), torch.tensor([0, 99]))
"""


@pytest.mark.slow
def test_findings_in_kernels_of_pytorchs_compiler_name_the_programs_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    if not hasattr(torch._inductor.config.trace, "provenance_tracking_level"):
        pytest.skip("since PyTorch 2.9")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    for _ in range(2):  # Compiled, and found in the compiler's cache.
        code, report, output = run_check(tmp_path, COMPILED)
        assert code == 3, output
        places = [[place.partition(".py:")[2] for place in finding["origins"]] for finding in report["findings"]]
        assert places[0][0] == "8: v = tl.load(x + i)", output
        assert "20: return scaled[i] + 1" in places[1], output
