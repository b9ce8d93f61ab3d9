# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Pointers into several tensors, and pointers that kernels load as integers, keep to the tensors they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def run(kernel: Any, programs: int, *arguments: Any) -> None:
    bragg.debug.interpret(kernel)[(programs,)](*arguments)


@triton.jit
def chosen_by_program(x, y, out):
    pid = tl.program_id(0)
    source = x if pid % 2 == 0 else y
    i = tl.arange(0, 4)
    tl.store(out + pid * 4 + i, tl.load(source + i))


def test_programs_choose_between_tensors() -> None:
    x, y, out = floats(0, 1, 2, 3), floats(10, 11, 12, 13), np.zeros((4, 4), np.float32)
    run(chosen_by_program, 4, x, y, out)
    assert out.tolist() == [x.tolist(), y.tolist()] * 2


def test_chosen_tensor_is_named_where_it_is_left() -> None:
    x, y, out = floats(0, 1, 2), floats(10, 11, 12, 13), np.zeros((4, 4), np.float32)
    with bragg.debug.check() as report:
        run(chosen_by_program, 4, x, y, out)
    (finding,) = report
    assert (finding.rule, finding.tensor.name) == ("out-of-bounds", "x")
    assert out[1].tolist() == y.tolist()


@triton.jit
def chosen_by_lane(x, y, z, out):
    pid = tl.program_id(0)
    i = tl.arange(0, 4)
    pointers = tl.where(i % 2 == 0, x + i, y + i)
    if pid == 1:
        pointers = z + i
    old = tl.atomic_add(pointers, 1.0, mask=i < 3)
    tl.store(out + pid * 4 + i, old)
    tl.store(pointers, tl.load(pointers, mask=i < 3, other=-1.0) * 2, mask=i < 2)


def test_lanes_choose_between_tensors_for_every_kind_of_access() -> None:
    x, y, z, out = floats(0, 1, 2, 3), floats(10, 11, 12, 13), floats(20, 21, 22, 23), np.zeros((2, 4), np.float32)
    run(chosen_by_lane, 2, x, y, z, out)
    assert out.tolist() == [[0, 11, 2, 0], [20, 21, 22, 0]]
    assert x.tolist() == [2, 1, 3, 3]
    assert y.tolist() == [10, 24, 12, 13]
    assert z.tolist() == [42, 44, 23, 23]


@triton.jit
def through_a_table(table, out):
    pid = tl.program_id(0)
    i = tl.arange(0, 4)
    pointer = tl.load(table + pid).to(tl.pointer_type(tl.float32))
    tl.store(pointer + i, tl.load(pointer + i) + 1)
    second = (pointer + 1).to(tl.int64) + 4
    tl.store(out + pid, tl.load(second.to(tl.pointer_type(tl.float32))))


def test_table_of_addresses_leads_to_tensors_that_are_no_arguments() -> None:
    y, z, out = floats(0, 1, 2, 3), floats(10, 11, 12, 13), np.zeros(2, np.float32)
    run(through_a_table, 2, np.array([y.ctypes.data, z.ctypes.data]), out)
    assert out.tolist() == [3, 13]
    assert (y.tolist(), z.tolist()) == ([1, 2, 3, 4], [11, 12, 13, 14])


def test_address_of_a_tensor_and_of_a_part_of_it_is_that_of_the_whole() -> None:
    y, out = floats(0, 1, 2, 3), np.zeros(1, np.float32)
    part = y[:2]
    run(through_a_table, 1, np.array([part.ctypes.data]), out)
    assert y.tolist() == [1, 2, 3, 4]


def test_table_of_addresses_leads_to_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    tensors = [torch.arange(4.0), torch.arange(4.0) + 10]
    out = torch.zeros(2)
    run(through_a_table, 2, torch.tensor([one.data_ptr() for one in tensors]), out)
    assert out.tolist() == [3, 13]
    assert tensors[1].tolist() == [11, 12, 13, 14]


def test_address_in_no_tensor_is_out_of_bounds() -> None:
    with pytest.raises(KernelFault, match="out-of-bounds load of memory of no tensor"):
        run(through_a_table, 1, np.array([64]), np.zeros(1, np.float32))


@triton.jit
def seen_as_halves(x, out):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.load(x.to(tl.pointer_type(tl.int16)) + i))


def test_pointer_to_elements_of_another_size() -> None:
    x, out = np.array([0x00020001, 0x00040003, -1, 7], np.int32), np.zeros(8, np.int16)
    run(seen_as_halves, 1, x, out)
    assert out.tolist() == x.view(np.int16).tolist()


@triton.jit
def doubles(out, place):
    tl.store(out.to(tl.pointer_type(tl.float64)) + place, 1.5)


@pytest.mark.parametrize(
    ("elements", "place", "message"),
    [
        (1, 0, "store of out, which is smaller than one fp64"),
        (3, 1, "store outside of out, which has the offsets 0 to 0"),
        (3, 0, None),
    ],
)
def test_an_element_that_is_only_in_part_in_the_tensor_is_outside(
    elements: int, place: int, message: str | None
) -> None:
    out = np.zeros(elements, np.float32)
    with bragg.debug.check() as report:
        bragg.debug.interpret(doubles)[(1,)](out, place)
    assert [finding.message for finding in report] == ([message] if message else [])
    assert out[: elements // 2 * 2].view(np.float64).tolist() == ([] if elements == 1 else [1.5 if place == 0 else 0.0])
    assert out[2:].tolist() == [0.0] * (elements - 2)


@triton.jit
def unaligned(x, out):
    tl.store(out, tl.load((x.to(tl.int64) + 2).to(tl.pointer_type(tl.float32))))


def test_unaligned_address_is_a_fault() -> None:
    with pytest.raises(KernelFault, match="is not aligned to fp32"):
        run(unaligned, 1, floats(0, 1), floats(0))


@triton.jit
def compared(x, y, out):
    tl.store(out, (x == y).to(tl.int32))
    tl.store(out + 1, (x != y).to(tl.int32))
    tl.store(out + 2, (x + 1 > x).to(tl.int32))
    tl.store(out + 3, (x == 0).to(tl.int32))


def test_pointers_are_compared_by_address() -> None:
    out = np.zeros(4, np.int32)
    run(compared, 1, floats(0, 1), floats(0), out)
    assert out.tolist() == [0, 1, 1, 0]


@triton.jit
def atomic_loads_and_stores(flag, out):
    pid = tl.program_id(0)
    if pid == 0:
        seen = tl.atomic_poll(flag, 1, sem="acquire")
        tl.store(out, tl.atomic_load(flag + 1, sem="relaxed") + seen.to(tl.int32))
    else:
        tl.atomic_store(flag + 1, 41, sem="relaxed")
        tl.atomic_store(flag, 1)


@pytest.mark.skipif(not hasattr(tl, "atomic_poll"), reason="this Triton has no atomic_poll")
def test_poll_waits_for_a_later_program() -> None:
    flag, out = np.zeros(2, np.int32), np.zeros(1, np.int32)
    run(atomic_loads_and_stores, 2, flag, out)
    assert (flag.tolist(), out.tolist()) == ([1, 41], [42])


@triton.jit
def polls_in_vain(flag, out, TIMEOUT: tl.constexpr):
    tl.store(out, tl.atomic_poll(flag, 1, timeout_ns=TIMEOUT).to(tl.int32) + 5)


@pytest.mark.skipif(not hasattr(tl, "atomic_poll"), reason="this Triton has no atomic_poll")
def test_poll_with_a_time_limit_ends_and_one_without_is_a_deadlock() -> None:
    out = np.zeros(1, np.int32)
    run(polls_in_vain, 1, np.zeros(1, np.int32), out, 1000)
    assert out.tolist() == [5]
    with pytest.raises(KernelFault, match="deadlock"):
        run(polls_in_vain, 1, np.zeros(1, np.int32), out, None)


@triton.jit
def partly_nowhere(table, out):
    i = tl.arange(0, 4)
    pointers = tl.load(table + i).to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(pointers, mask=i < 3, other=-1.0))


def test_address_in_no_tensor_beside_others_counts_only_where_it_is_used() -> None:
    x, out = floats(0, 1, 2, 3), floats(0, 0, 0, 0)
    table = x.ctypes.data + np.arange(4) * 4
    table[3] = 0x7FFF_0000_0000
    run(partly_nowhere, 1, table, out)
    assert out.tolist() == [0, 1, 2, -1]
    table[1] = 0x7FFF_0000_0000
    with pytest.raises(KernelFault, match="out-of-bounds load of memory of no tensor"):
        run(partly_nowhere, 1, table, out)


@triton.jit
def there_and_back(addresses, out, N: tl.constexpr):
    i = tl.arange(0, N)
    pointers = tl.load(addresses + i).to(tl.pointer_type(tl.int32))
    tl.store(out + i, tl.where(i % 2 == 0, pointers, pointers + 1))


def test_integers_that_are_no_addresses_survive_as_pointers() -> None:
    numbers, out = np.array([-1, 3, (1 << 62) + 1, 64], np.int64), np.zeros(4, np.int64)
    run(there_and_back, 1, numbers, out, 4)
    assert out.tolist() == [-1, 7, (1 << 62) + 1, 68]


@triton.jit
def stored_in_another_shape(x):
    rows = tl.arange(0, 4)[:, None]
    tl.store(x + rows * 4 + tl.arange(0, 4)[None, :], tl.zeros([2, 4], tl.float32))


@triton.jit
def masked_in_another_shape(x):
    tl.load(x + tl.arange(0, 4), tl.arange(0, 2) < 1)


@pytest.mark.parametrize("kernel", [stored_in_another_shape, masked_in_another_shape])
def test_blocks_that_do_not_fit_their_pointers_are_not_compiled(kernel: Any) -> None:
    with pytest.raises(triton.CompilationError, match="do not fit together"), bragg.debug.interpret():
        kernel[(1,)](np.zeros(16, np.float32))
