"""Calls of `pallas_call` inside of a check: executed here, on NumPy's arrays, and watched."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.debug.findings import KernelFinding, TensorFacts, Witness, program_ids
from bragg.debug.numbers.dtypes import dtype_of_array
from bragg.debug.pallas.copies import Copies
from bragg.debug.pallas.evaluation import Evaluation, scratch_reference
from bragg.debug.pallas.references import NOBODY, Reference, Whole, whole_reference
from bragg.debug.verdicts import Verdict
from bragg.model import Severity
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.report import Report

__all__ = ["checked_call"]

_WAIT = "Call .wait() of the copy before the kernel ends"
_MASK = "Compare the index with the extent of the block, or let the block be larger"


def checked_call(report: Report, checkers: frozenset[str]) -> Callable[..., Any]:
    """What stands in for the implementation of `pallas_call` while a session checks."""

    def pallas_call(*given: Any, **params: Any) -> list[Any]:
        import jax

        return [jax.numpy.asarray(one) for one in _Call(params, given, report, checkers).run()]

    return pallas_call


class _Call:
    """One call: the arrays of all its programs, and what was found."""

    def __init__(self, params: dict[str, Any], given: Sequence[Any], report: Report, checkers: frozenset[str]) -> None:
        self._mapping, self._jaxpr = params["grid_mapping"], params["jaxpr"]
        info = self._jaxpr.debug_info
        self._kernel = str(info.func_src_info).split(" at ")[0]
        self._home = _home(str(info.func_src_info))
        self._report, self._checkers = report, checkers
        self._places: list[tuple[str, int]] = []
        self._program = 0
        self._is_parallel = not _is_for_tpu(params)
        self._copies = Copies()
        extents = iter(given)
        self._grid = tuple(one if isinstance(one, int) else int(next(extents)) for one in self._mapping.grid)
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
        before = self._report.additions
        self._report.launches += 1
        self._report.programs += math.prod(self._grid)
        first = self._mapping.num_index_operands
        indices = [whole_reference(one) for one in self._inputs[:first]]
        wholes = [*self._inputs[first:], *self._outputs]
        avals = [one.aval for one in self._jaxpr.invars[first + len(wholes) :]]
        scratch: list[Reference] = []
        for number in range(math.prod(self._grid)):
            self._program = number
            ids = tuple(int(one) for one in np.unravel_index(number, self._grid)) if self._grid else ()
            own_ids, grid = self._without_vmapped(ids), self._without_vmapped(self._grid)
            evaluation = Evaluation(own_ids, grid, self._see, self._copies)
            blocks = [
                _block(whole, mapping, [*map(np.int32, ids), *indices], evaluation)
                for whole, mapping in zip(wholes, self._mapping.block_mappings, strict=True)
            ]
            if self._is_parallel or not scratch:  # That of a TPU stays from one program to the next.
                scratch = [scratch_reference(one, f"scratch {k}") for k, one in enumerate(avals)]
            evaluation.run(self._jaxpr, (), [*indices, *blocks, *scratch])
        for copy in self._copies.left():
            message = f"a copy to {copy.target.name} is not waited for"
            self._tell("missing-wait", self._place(copy.equation), copy.target, np.ones(1, bool), message, _WAIT)
        verdict = "finding" if self._report.additions > before else "clean"
        because = "" if verdict == "finding" else "Pallas kernels are executed, not proven"
        self._report.verdicts.counts[Verdict(self._kernel, verdict, because)] += 1
        return [one.data for one in self._outputs]

    def _without_vmapped(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Axes of the grid that the kernel knows: `vmap` has added others."""
        return tuple(one for axis, one in enumerate(axes) if axis not in self._mapping.vmapped_dims)

    def _see(self, kind: str, reference: Reference, block: tuple[Array, ...], mask: Any, equation: Any) -> None:
        whole = reference.whole
        place = self._place(equation)
        places, inside = reference.places(block)
        outside = np.zeros(inside.shape, bool)
        for index, extent in zip(block, reference.shape, strict=True):
            outside = outside | (index < 0) | (index >= extent)
        inside, outside = inside & mask, outside & mask
        if outside.any():
            word = "load" if kind == "choice" else kind
            self._tell("out-of-bounds", place, whole, outside, f"{word} outside of the block of {whole.name}", _MASK)
        own = tuple(one[inside] for one in places)
        if kind in ("load", "atomic"):
            unwritten = np.zeros(inside.shape, bool)
            unwritten[inside] = ~whole.is_written[own]
            if unwritten.any():
                message = f"load of elements of {whole.name} that were never written"
                self._tell("uninitialised-read", place, whole, unwritten, message, "Write them first")
        self._see_others(kind, whole, own, inside, place)

    def _see_others(
        self, kind: str, whole: Whole, own: tuple[Array, ...], inside: Array, place: tuple[str, int]
    ) -> None:
        number = self._places.index(place)
        for what, who, where in (
            ("writes", whole.writer, whole.write_place),
            ("reads", whole.reader, whole.read_place),
        ):
            if what == "reads" and kind in ("load", "choice"):
                continue
            others = who[own]
            is_other = (others != NOBODY) & (others != self._program)
            if what == "writes" and kind == "atomic":
                is_other &= ~whole.is_atomic[own]
            clash = np.zeros(inside.shape, bool)
            clash[inside] = is_other
            if self._is_parallel and clash.any():
                rival = int(np.argmax(is_other))
                other = int(others[rival]), self._places[int(where[own][rival])]
                verb = {"store": "writes", "atomic": "atomically changes"}.get(kind, "reads")
                message = (
                    f"data race on {whole.name}: one program {verb} an element that another one {what}, in no order"
                )
                self._tell("data-race", place, whole, clash, message, "Let each element belong to one program", other)
        if kind in ("load", "choice"):
            whole.reader[own], whole.read_place[own] = self._program, number
        else:
            whole.writer[own], whole.write_place[own] = self._program, number
            whole.is_atomic[own] = kind == "atomic"

    def _tell(
        self,
        rule: str,
        place: tuple[str, int],
        whole: Whole,
        lanes: Array,
        message: str,
        hint: str,
        other: tuple[int, tuple[str, int]] | None = None,
    ) -> None:
        if rule not in self._checkers:
            return
        grid = _three(self._grid)
        number = _linear(self._program, self._grid)
        known = dtype_of_array(str(whole.data.dtype))
        dtype = known.name if known else str(whole.data.dtype)
        strides = tuple(stride // whole.data.itemsize for stride in whole.data.strides)
        found = np.flatnonzero(lanes)
        conflict: dict[str, Any] | None = None
        if other is not None:
            rival, (file, line) = other
            code = linecache.getline(file, line).strip()
            ids = program_ids(_linear(rival, self._grid), grid)
            conflict = {"program": list(ids), "file": file, "line": line, "code": code, "why": ""}
        finding = KernelFinding(
            rule,
            Severity.ERROR,
            message,
            hint,
            kernel=self._kernel,
            file=place[0],
            line=place[1],
            tensor=TensorFacts(whole.name, dtype, whole.data.shape, strides),
            witness=Witness(program_ids(number, grid), int(found[0])),
            grid=grid,
            other=conflict,
        )
        key = (rule, self._kernel, *place, whole.name, "" if rule == "data-race" else message)
        self._report.add(finding, key, [number], len(found), found.tolist())

    def _place(self, equation: Any) -> tuple[str, int]:
        place = _line_of(equation) or self._home
        if place not in self._places:
            self._places.append(place)
        return place


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


def _line_of(equation: Any) -> tuple[str, int] | None:
    """File and line of the author that an equation comes from; None: it does not tell."""
    from jax._src import source_info_util

    source = equation.source_info
    try:
        frame = source_info_util.user_frame(source.traceback)
    except AttributeError:  # Until JAX 0.7 it took the whole.
        frame = source_info_util.user_frame(source)
    return None if frame is None else (frame.file_name, int(frame.start_line))


def _home(text: str) -> tuple[str, int]:
    """File and line in `kernel at file.py:12`."""
    file, _, line = text.partition(" at ")[2].rpartition(":")
    return (file, int(line)) if line.isdecimal() else ("", 0)


def _three(grid: tuple[int, ...]) -> tuple[int, int, int]:
    """A grid of three axes, the first one fastest; further ones are in the last."""
    padded = (*grid, 1, 1, 1)
    return padded[0], padded[1], math.prod(padded[2:])


def _linear(number: int, grid: tuple[int, ...]) -> int:
    """Number of a program with the first axis fastest, of one with the last axis fastest."""
    if not grid:
        return 0
    ids = [int(one) for one in np.unravel_index(number, grid)]
    x, y, _ = _three(grid)
    rest = int(np.ravel_multi_index(ids[2:], grid[2:])) if len(grid) > 2 else 0
    return ids[0] + x * ((ids[1] if len(ids) > 1 else 0) + y * rest)
