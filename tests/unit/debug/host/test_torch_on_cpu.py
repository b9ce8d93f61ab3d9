"""PyTorch's devices where there is no GPU; in a process of its own, which stays redirected."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import torch
{chosen_before}
from bragg.debug.host.torch_on_cpu import use_cpu_for_cuda
use_cpu_for_cuda(torch)
{chosen_after}
print(torch.ones(2).sum().item(), torch.ones(2, device="cuda").is_cuda)
"""
CUDA = 'torch.set_default_device("cuda")'


@pytest.mark.parametrize(("before", "after"), [(CUDA, ""), ("", CUDA)])
def test_cuda_as_the_default_device_is_the_cpu(before: str, after: str) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("nothing is redirected where there is a GPU")
    text = PROGRAM.format(chosen_before=before, chosen_after=after)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2.0 True\n", "")


PINNED = """
import torch
from bragg.debug.host.torch_on_cpu import use_cpu_for_cuda
use_cpu_for_cuda(torch)
print(torch.ones(3, pin_memory=True).pin_memory().cuda(non_blocking=True).sum().item())
"""


def test_memory_that_is_pinned_for_a_gpu_is_memory() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("nothing is redirected where there is a GPU")
    done = subprocess.run([sys.executable, "-c", PINNED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("3.0\n", "")
