"""Calls of `pallas_call` inside of a check: executed here, on NumPy's arrays, and watched."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.debug.pallas.copies import Copies
from bragg.debug.pallas.evaluation import Evaluation, scratch_reference
from bragg.debug.pallas.references import Reference, Whole, whole_reference
from bragg.debug.pallas.warpgroups import Block
from bragg.debug.pallas.watching import Watcher
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.report import Report

_WAIT = "Call .wait() of the copy before the kernel ends"
_MASK = "Compare the index with the extent of the block, or let the block be larger"


def checked_call(report: Report, checkers: frozenset[str]) -> Callable[..., Any]:
    """What stands in for the implementation of `pallas_call` while a session checks."""

    def pallas_call(*given: Any, **params: Any) -> list[Any]:
        import jax

        return [jax.numpy.asarray(one) for one in _Call(params, given, report, checkers).run()]

    return pallas_call


class _Call(Watcher):
    """One call: the arrays of all its programs, and what was found."""

    def __init__(self, params: dict[str, Any], given: Sequence[Any], report: Report, checkers: frozenset[str]) -> None:
        self._mapping, self._jaxpr = params["grid_mapping"], params["jaxpr"]
        info = self._jaxpr.debug_info
        self._copies = Copies()
        extents = iter(given)
        grid = tuple(one if isinstance(one, int) else int(next(extents)) for one in self._mapping.grid)
        super().__init__(str(info.func_src_info), grid, report, checkers, is_parallel=not _is_for_tpu(params))
        self._is_of_mosaic_gpu = "mosaic_gpu" in type(params.get("compiler_params")).__module__
        names = [f"argument {k}" for k in range(len(self._jaxpr.invars))]  # Of what `jvp` makes none are known.
        names[: len(info.arg_names or ())] = map(str, info.arg_names or ())
        arrays = [np.asarray(one) for one in extents]
        self._inputs = [
            Whole(name, data.copy(), np.ones(data.shape, bool)) for name, data in zip(names, arrays, strict=False)
        ]
        self._outputs = [
            Whole(name, np.zeros(one.shape, one.dtype), np.zeros(one.shape, bool))
            for name, one in zip(names[len(arrays) :], params["out_avals"], strict=False)
        ]
        for source, target in params["input_output_aliases"]:
            self._outputs[target] = self._inputs[source]

    def run(self) -> list[Array]:
        """The results."""
        first = self._mapping.num_index_operands
        indices = [whole_reference(one) for one in self._inputs[:first]]
        wholes = [*self._inputs[first:], *self._outputs]
        avals = [one.aval for one in self._jaxpr.invars[first + len(wholes) :]]
        scratch: list[Reference] = []
        for number in range(math.prod(self.grid)):
            self.program = number
            ids = tuple(int(one) for one in np.unravel_index(number, self.grid)) if self.grid else ()
            own_ids, grid = self._without_vmapped(ids), self._without_vmapped(self.grid)
            block = Block(self, {}, 1, None) if self._is_of_mosaic_gpu else None
            evaluation = (
                Evaluation(own_ids, grid, self.see, self._copies) if block is None else block.evaluation(own_ids, grid)
            )
            blocks = [
                _block(whole, mapping, [*map(np.int32, ids), *indices], evaluation)
                for whole, mapping in zip(wholes, self._mapping.block_mappings, strict=True)
            ]
            if self._is_parallel or not scratch:  # That of a TPU stays from one program to the next.
                memory = scratch_reference if block is None else block.memory
                scratch = [memory(one, f"scratch {k}") for k, one in enumerate(avals)]
            evaluation.run(self._jaxpr, (), [*indices, *blocks, *scratch])
            if block is not None:
                block.end()
        for copy in self._copies.left():
            message = f"a copy to {copy.target.name} is not waited for"
            self.tell("missing-wait", self.place(copy.equation), copy.target, np.ones(1, bool), message, _WAIT)
        self.judge()
        return [one.data for one in self._outputs]

    def _without_vmapped(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Axes of the grid that the kernel knows: `vmap` has added others."""
        return tuple(one for axis, one in enumerate(axes) if axis not in self._mapping.vmapped_dims)


def _is_for_tpu(params: dict[str, Any]) -> bool:
    """The kernel asks for what TPUs have, which run the programs of a grid one after the other."""
    spaces = [getattr(one.aval, "memory_space", None) for one in params["jaxpr"].invars]
    modules = [type(one).__module__ for one in (params.get("compiler_params"), *spaces)]
    return any("tpu" in module or ".mosaic." in module for module in modules)


def _block(whole: Whole, mapping: Any, given: Sequence[Any], evaluation: Evaluation) -> Reference:
    """The block of an array that a program gets, by its place in the grid and the scalars that index blocks."""
    closed = mapping.index_map_jaxpr
    places = evaluation.run(closed.jaxpr, closed.consts, given)
    start, shape, kept = [], [], []
    for axis, (size, place) in enumerate(zip(mapping.block_shape, places, strict=True)):
        kind = type(size).__name__
        extent = int(getattr(size, "block_size", size if isinstance(size, int) else 1))
        if kind not in ("Blocked", "Squeezed", "Element", "int", "NoneType", "Mapped"):
            raise Unsupported(f"{kind} blocks are not supported in Pallas kernels", hint="Use sizes in numbers")
        start.append(int(place) * (1 if kind == "Element" else extent))
        if kind in ("Blocked", "Element", "int"):
            shape.append(extent)
            kept.append(axis)
    return Reference(whole, tuple(start), tuple(shape), tuple(kept))
