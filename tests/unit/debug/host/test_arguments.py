# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Arrays of the host, of GPUs and of other packages as arguments of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug
from bragg.debug.faults import KernelFault
from bragg.errors import UsageError


@triton.jit
def double(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def shift(x, y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def run(kernel: Any, *arguments: Any) -> None:
    bragg.debug.interpret(kernel)[(1,)](*arguments, N=16)


VALUES = np.arange(10, dtype="f4")


def test_arrays_of_numpy_are_used_where_they_are() -> None:
    table = np.zeros((10, 3), "f4")
    with pytest.raises(KernelFault, match="out-of-bounds store"):
        run(double, VALUES, table[:, 1], 10)
    run(double, VALUES, table[1:4].reshape(-1), 9)
    assert table[1:4].ravel().tolist() == [2.0 * number for number in range(9)]
    run(double, VALUES[::-1][:1], table, 1)
    assert table[0, 0] == 18.0


def test_an_array_that_must_not_change_is_read_and_not_written() -> None:
    out = np.zeros(10, "f4")
    frozen = VALUES.copy()
    frozen.setflags(write=False)
    run(double, frozen, out, 10)
    assert out[9] == 18.0
    with pytest.raises(KernelFault, match="out is read-only"):
        run(double, VALUES, frozen, 10)


@pytest.mark.parametrize("value", [np.zeros(3, "c8"), np.array(["text"]), np.zeros(3, "M8[s]")])
def test_elements_that_triton_does_not_have_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="the argument x has elements of"):
        run(double, value, np.zeros(3, "f4"), 3)


def test_what_is_no_argument_is_refused() -> None:
    with pytest.raises(UsageError, match="the argument x is dict, which a kernel does not take"):
        run(double, {}, VALUES, 3)


class Storage:
    """Memory of a GPU as PyTorch shows it."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.n_copies = 0

    def data_ptr(self) -> int:
        address: int = self.memory.ctypes.data
        return address

    def cpu(self) -> Storage:
        self.n_copies += 1
        return Storage(self.memory.copy())

    def copy_(self, other: Storage) -> None:
        self.memory[...] = other.memory


class CudaTensor:
    """A tensor of PyTorch in GPU memory."""

    dtype = "torch.float32"
    device = type("Device", (), {"type": "cuda"})

    def __init__(self, storage: Storage, start: int, count: int) -> None:
        self._storage, self._start = storage, start
        self.shape = (count,)

    def data_ptr(self) -> int:
        return self._storage.data_ptr() + 4 * self._start

    def untyped_storage(self) -> Storage:
        return self._storage

    def stride(self) -> tuple[int]:
        return (1,)


def test_tensors_on_a_gpu_are_copied_once_for_each_storage_and_written_back() -> None:
    storage = Storage(np.arange(20, dtype="f4"))
    run(double, CudaTensor(storage, 0, 10), CudaTensor(storage, 10, 10), 10)
    assert storage.n_copies == 1
    assert storage.memory.tolist() == [*range(10), *range(0, 20, 2)]


def test_tensors_on_a_gpu_hold_what_a_kernel_wrote_before_its_fault() -> None:
    storage = Storage(np.zeros(10, "f4"))
    with pytest.raises(KernelFault, match="out-of-bounds"):
        run(double, CudaTensor(storage, 0, 5), CudaTensor(storage, 5, 5), 6)
    assert (storage.memory == 0).all()


class CudaArray:
    """An array of CuPy."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.dtype, self.shape = memory.dtype, memory.shape
        self.__cuda_array_interface__ = {"data": (memory.ctypes.data, False), "shape": memory.shape, "typestr": "<f4"}

    def get(self) -> Any:
        return self._memory.copy()

    def set(self, host: Any) -> None:
        self._memory[...] = host


def test_arrays_with_the_cuda_array_interface_are_copied_and_written_back() -> None:
    memory, target = VALUES.copy(), np.zeros(10, "f4")
    run(double, CudaArray(memory), CudaArray(target), 10)
    assert target.tolist() == (VALUES * 2).tolist()
    run(shift, CudaArray(target), CudaArray(target), 10)
    assert target.tolist() == (VALUES * 2 + 1).tolist()


def test_an_array_on_a_gpu_that_cannot_be_copied_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    array = CudaArray(VALUES.copy())
    monkeypatch.delattr(CudaArray, "get")
    with pytest.raises(UsageError, match="the argument x is in GPU memory, and CudaArray does not say how to copy it"):
        run(double, array, VALUES.copy(), 10)


def test_tensors_of_pytorch_on_the_cpu_are_used_where_they_are() -> None:
    torch = pytest.importorskip("torch")
    table = torch.zeros(4, 16, dtype=torch.bfloat16)
    run(double, torch.arange(16, dtype=torch.bfloat16).requires_grad_(), table[2], 16)
    assert table[2].tolist() == [2.0 * number for number in range(16)]
    assert table.sum() == table[2].sum()


@triton.jit
def gathered(x, index, out, stride):
    row, column = tl.arange(0, 4)[:, None], tl.arange(0, 2)[None, :]
    values = tl.load(x + row * stride + tl.load(index + row * 2 + column))
    tl.store(out + row * 2 + column, values)


def test_a_kernel_adds_distances_along_an_axis_of_stride_0_itself() -> None:
    torch = pytest.importorskip("torch")
    x, index = torch.arange(32.0).reshape(4, 8)[:, 1:], torch.tensor([[6, 0], [1, 1], [0, 5], [2, 6]])
    out = torch.zeros(4, 2)
    with bragg.debug.check() as report:
        gathered[(1,)](x.as_strided((4, 2), (8, 0)), index, out, 8)
    assert not len(report), report.lines()
    assert torch.equal(out, torch.gather(x, 1, index))
    index[3, 1] = 7
    with bragg.debug.check() as report:
        gathered[(1,)](x.as_strided((4, 2), (8, 0)), index, out, 8)
    assert [(one.rule, one.positions) for one in report] == [("out-of-bounds", {7})]


def test_a_view_that_a_library_makes_of_a_tensor_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    base = torch.arange(10.0)

    class Reversed:
        """What FlagGems passes for `flip`: PyTorch has no negative strides, and this has no `storage_offset`."""

        dtype, device, shape = base.dtype, base.device, (10,)

        def stride(self) -> tuple[int, ...]:
            return (-1,)

        def data_ptr(self) -> int:
            return int(base[9:].data_ptr())

        def element_size(self) -> int:
            return 4

        def untyped_storage(self) -> Any:
            return base.untyped_storage()

    out = torch.zeros(1)
    run(double, Reversed(), out, 1)
    assert out.tolist() == [18.0]


def test_arrays_of_jax_are_read_and_results_go_to_arrays_of_numpy() -> None:
    jnp = pytest.importorskip("jax.numpy")
    out = np.zeros(10, "f4")
    run(double, jnp.arange(10, dtype=jnp.float32), out, 10)
    assert out.tolist() == (VALUES * 2).tolist()
    half = np.zeros(10, jnp.bfloat16)
    run(double, jnp.arange(10, dtype=jnp.bfloat16), half, 10)
    assert half.astype("f4").tolist() == (VALUES * 2).tolist()
    with pytest.raises(KernelFault, match="out is read-only"):
        run(double, VALUES, jnp.zeros(10), 10)
