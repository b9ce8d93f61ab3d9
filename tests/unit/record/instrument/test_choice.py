"""Kernels that a program chooses for clocks."""

from __future__ import annotations

from types import SimpleNamespace
from weakref import WeakSet

import pytest

import bragg
from bragg.errors import UsageError
from bragg.record.instrument import choice

triton = pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def _nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_chosen", WeakSet())


def kernel(x: int) -> None: ...


def other(x: int) -> None: ...


def test_all_kernels_may_have_clocks_until_one_is_chosen() -> None:
    plain = triton.jit(other)
    assert choice.is_chosen(plain)
    assert choice.is_chosen(None)
    chosen = triton.jit(kernel)
    assert bragg.instrument(chosen) is chosen
    assert choice.is_chosen(chosen)
    assert not choice.is_chosen(plain)
    assert not choice.is_chosen(None)  # compiled from a file of intermediate code


def test_kernels_are_chosen_through_their_decorators() -> None:
    jitted = triton.jit(kernel)
    tuned = triton.runtime.autotuner.Autotuner.__new__(triton.runtime.autotuner.Autotuner)
    tuned.fn = triton.heuristics({"x": len})(jitted)
    assert bragg.instrument(tuned) is tuned
    assert choice.is_chosen(jitted)
    assert not choice.is_chosen(triton.jit(other))


@pytest.mark.parametrize("wrong", [kernel, None, SimpleNamespace(fn=3)])
def test_what_is_no_kernel_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match=r"takes a Triton kernel, above @triton\.jit"):
        bragg.instrument(wrong)
