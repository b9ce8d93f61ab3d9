"""PyTorch's devices where there is no GPU; in a process of its own, which stays redirected."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# PyTorch of this process may have been redirected by another test.
pytestmark = [
    pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed"),
    pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="nothing is redirected where there is a GPU"),
]

PROGRAM = """
import torch
{chosen_before}
from bragg.debug.host.pytorch.on_cpu import use_cpu_for_cuda
use_cpu_for_cuda(torch)
{chosen_after}
print(torch.ones(2).sum().item(), torch.ones(2, device="cuda").is_cuda)
"""
CUDA = 'torch.set_default_device("cuda")'


@pytest.mark.parametrize(("before", "after"), [(CUDA, ""), ("", CUDA)])
def test_cuda_as_the_default_device_is_the_cpu(before: str, after: str) -> None:
    text = PROGRAM.format(chosen_before=before, chosen_after=after)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2.0 True\n", "")


ON_THE_GPU = """
import torch
from bragg.debug.host.pytorch.on_cpu import use_cpu_for_cuda
use_cpu_for_cuda(torch)
print(torch.ones(3, pin_memory=True).pin_memory().cuda(non_blocking=True).sum().item())
x = torch.ones(2, device="cuda")
print(x.device, x.device.type, x.get_device(), torch.nn.Linear(2, 3).to(x.device).weight.device.index)
print(torch.empty(3, device=x.device).device == x.device, x.to(x.device, torch.float64).dtype)
torch.testing.assert_close(x, x.new_ones(2, device=x.device))
with torch.cuda.device(x.device), torch.autocast(x.device.type, enabled=False):
    print(x @ x)
for place in ("cuda", x.device):
    generator = torch.Generator(device=place).manual_seed(3)
    print(torch.rand(2, generator=generator, device=place).equal(torch.rand(2, generator=torch.manual_seed(3))))
print(isinstance(generator, torch.Generator), isinstance(torch.default_generator, torch.Generator))
"""


def test_a_program_finds_its_tensors_on_the_gpu_and_memory_pinned_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", ON_THE_GPU], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "3.0\ncuda:0 cuda 0 0\nTrue torch.float64\ntensor(2.)\nTrue\nTrue\nTrue True\n"


MOVED = """
import torch
from bragg.debug.host.pytorch.on_cpu import use_cpu_for_cuda
use_cpu_for_cuda(torch)
from bragg.debug.host.arguments import Arguments, TensorOnHost
def is_taken(x, **options):
    try:
        return Arguments(**options).convert("x", x) is not None
    except TensorOnHost as error:
        return str(error).startswith("the argument x is a tensor on the CPU") and "no"
z = torch.ones(2, device="cpu")
print(is_taken(torch.ones(2).cpu()), is_taken(z))  # of a program that names no GPU
x = torch.ones(2, device="cuda")
y = x.cpu()
print(is_taken(x), is_taken(y), is_taken(x.to("cpu")), is_taken(z), y.data_ptr() == x.data_ptr())
print(is_taken(y, is_on_gpu=False), is_taken(y.double()), is_taken(y + 1))
print(is_taken(y.cuda()), is_taken(y.to("cuda")), is_taken(y.to(x.device)), is_taken(y.to(x)), y.cpu() is y)
print(is_taken(torch.rand(2)), is_taken(torch.rand(2).cuda()), is_taken(torch.zeros(2, pin_memory=True)))
with torch.device("cuda"):
    print(is_taken(torch.ones(2)))
layer = torch.nn.Linear(2, 2)
layer.register_buffer("table", z)
print(is_taken(layer.cuda().table), is_taken(layer.weight))
"""


def test_a_tensor_that_the_program_moved_to_the_cpu_is_not_on_the_gpu() -> None:
    done = subprocess.run([sys.executable, "-c", MOVED], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "True True",
        "True no no no True",
        "True True True",
        "True True True True True",
        "no True True",
        "True",
        "True True",
    ]


OPERATORS = """
import torch
from bragg.debug.host.pytorch.on_cpu import use_cpu_for_cuda
use_cpu_for_cuda(torch)
x = torch.ones(2, device="cuda")
def operator(name, devices):
    @torch.library.custom_op(name, mutates_args=(), device_types=devices)
    def made(x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda
        return x + torch.ones(2, device="cuda")
    return made
def of_the_cpu(x):
    raise NotImplementedError
both, anywhere = operator("own::both", "cuda"), operator("own::anywhere", None)
both.register_kernel("cpu", of_the_cpu)
anywhere.register_kernel("cpu", of_the_cpu)
print(operator("own::gpu", "cuda")(x).sum().item(), both(x).sum().item(), anywhere(x).sum().item())
library = torch.library.Library("other", "FRAGMENT")
library.define("tripled(Tensor x) -> Tensor")
library.impl("tripled", lambda x: x * 3, "CUDA")
print(torch.ops.other.tripled(x).sum().item(), operator("own::host", "cpu")(x).sum().item())
"""


def test_operators_of_a_program_do_what_they_do_on_the_gpu() -> None:
    done = subprocess.run([sys.executable, "-c", OPERATORS], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("4.0 4.0 4.0\n6.0 4.0\n", "")
