"""Two Triton kernels: a sum of vectors and a row-wise softmax, checked against PyTorch.

    bragg run examples/triton_add.py
    bragg view triton_add.bragg

Compilation shows once, on the host, below the first launch of each kernel. Where there is no GPU, `bragg run` executes
the kernels on the CPU.
"""

import torch
import triton
import triton.language as tl

import bragg


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, block: tl.constexpr):
    """Sum of x and y, `block` elements a program."""
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < size
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


@triton.jit
def softmax_kernel(in_ptr, out_ptr, columns, block: tl.constexpr):
    """Softmax of one row a program; `block` is a power of two that holds a row."""
    row = tl.program_id(0)
    offsets = tl.arange(0, block)
    inside = offsets < columns
    values = tl.load(in_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out_ptr + row * columns + offsets, powers / tl.sum(powers, axis=0), mask=inside)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Sum of two contiguous tensors of one shape."""
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), block=1024)
    return out


def softmax(matrix: torch.Tensor) -> torch.Tensor:
    """Softmax of each row of a contiguous matrix."""
    rows, columns = matrix.shape
    out = torch.empty_like(matrix)
    softmax_kernel[(rows,)](matrix, out, columns, block=triton.next_power_of_2(columns))
    return out


def main() -> None:
    """Launch both kernels a hundred times and compare their last results."""
    if not torch.cuda.is_available():
        raise SystemExit("This example needs a GPU that PyTorch can use. Without one: bragg run examples/triton_add.py")
    torch.manual_seed(0)
    x, y = (torch.randn(4096, 1000, device="cuda") for _ in range(2))
    for _ in range(100):
        with bragg.scope("add"):
            total = add(x, y)
        with bragg.scope("softmax"):
            shares = softmax(total)
    torch.testing.assert_close(total, x + y)
    torch.testing.assert_close(shares, (x + y).softmax(dim=1))
    print("both kernels agree with PyTorch")


if __name__ == "__main__":
    main()
