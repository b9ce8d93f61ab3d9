"""Calls of `pallas_call` inside of a check: executed here, on NumPy's arrays, and watched."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.debug.findings import KernelFinding, TensorFacts, Witness, program_ids
from bragg.debug.numbers.dtypes import dtype_of_array
from bragg.debug.pallas.evaluation import Evaluation, scratch_reference
from bragg.debug.pallas.references import NOBODY, Reference, Whole
from bragg.debug.verdicts import Verdict
from bragg.model import Severity
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.report import Report

__all__ = ["checked_call"]

_MASK = "Compare the index with the extent of the block, or let the block be larger"


def checked_call(original: Callable[..., Any], report: Report, checkers: frozenset[str]) -> Callable[..., Any]:
    """What stands in for `pallas_call` while a session checks."""

    def pallas_call(kernel: Any, *arguments: Any, **named: Any) -> Any:
        plain = original(kernel, *arguments, **named)

        def call(*given: Any) -> Any:
            import jax

            if any(isinstance(one, jax.core.Tracer) for one in jax.tree_util.tree_leaves(given)):
                raise Unsupported(
                    "a Pallas kernel inside of a transformation of JAX (vmap, grad) is not checked",
                    hint="Check the call itself, or give it a custom_vjp",
                )
            traced, shape = jax.make_jaxpr(plain, return_shape=True)(*given)
            if len(traced.eqns) != 1 or traced.eqns[0].primitive.name != "pallas_call":
                raise Unsupported("this form of pallas_call is not supported", hint="Call it with arrays alone")
            leaves = [np.asarray(one) for one in jax.tree_util.tree_leaves(given)]
            results = _Call(traced, leaves, report, checkers).run()
            made = [jax.numpy.asarray(one) for one in results]
            return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shape), made)

        return call

    return pallas_call


class _Call:
    """One call: the arrays of all its programs, and what was found."""

    def __init__(self, traced: Any, given: list[Array], report: Report, checkers: frozenset[str]) -> None:
        equation = traced.eqns[0]
        params, self._mapping = equation.params, equation.params["grid_mapping"]
        self._jaxpr = params["jaxpr"]
        info = self._jaxpr.debug_info
        self._kernel = str(info.func_src_info).split(" at ")[0]
        self._home = _home(str(info.func_src_info))
        self._grid = tuple(int(extent) for extent in self._mapping.grid)
        self._report, self._checkers = report, checkers
        self._places: list[tuple[str, int]] = []
        self._program = 0
        # TPUs run the programs of a grid one after the other.
        self._is_parallel = "tpu" not in type(params.get("compiler_params")).__module__
        if self._mapping.num_index_operands or self._mapping.num_dynamic_grid_bounds:
            raise Unsupported(
                "scalars that index blocks are not supported in Pallas kernels", hint="Pass them as input"
            )
        values = dict(zip(traced.jaxpr.invars, given, strict=True))
        constants = dict(zip(traced.jaxpr.constvars, traced.consts, strict=True))
        inputs = [
            np.asarray(one.val if hasattr(one, "val") else values.get(one, constants.get(one)))
            for one in equation.invars
        ]
        names = [*map(str, info.arg_names)]
        self._inputs = [
            Whole(name, data.copy(), np.ones(data.shape, bool)) for name, data in zip(names, inputs, strict=False)
        ]
        self._outputs = [
            Whole(name, np.zeros(one.shape, one.dtype), np.zeros(one.shape, bool))
            for name, one in zip(names[len(inputs) :], params["out_avals"], strict=False)
        ]
        for source, target in params["input_output_aliases"]:
            self._outputs[target] = self._inputs[source]

    def run(self) -> list[Array]:
        """The results."""
        before = self._report.additions
        self._report.launches += 1
        self._report.programs += math.prod(self._grid)
        scratch = self._jaxpr.invars[len(self._inputs) + len(self._outputs) :]
        mappings = self._mapping.block_mappings
        for number in range(math.prod(self._grid)):
            self._program = number
            ids = tuple(int(one) for one in np.unravel_index(number, self._grid)) if self._grid else ()
            evaluation = Evaluation(ids, self._grid, self._see)
            wholes = [*self._inputs, *self._outputs]
            blocks = [_block(whole, mapping, ids, evaluation) for whole, mapping in zip(wholes, mappings, strict=True)]
            own = [scratch_reference(one.aval, f"scratch {k}") for k, one in enumerate(scratch)]
            evaluation.run(self._jaxpr, (), [*blocks, *own])
        verdict = "finding" if self._report.additions > before else "clean"
        because = "" if verdict == "finding" else "Pallas kernels are executed, not proven"
        self._report.verdicts.counts[Verdict(self._kernel, verdict, because)] += 1
        return [one.data for one in self._outputs]

    def _see(self, kind: str, reference: Reference, block: tuple[Array, ...], equation: Any) -> None:
        whole = reference.whole
        place = self._place(equation)
        places, inside = reference.places(block)
        outside = np.zeros(inside.shape, bool)
        for index, extent in zip(block, reference.shape, strict=True):
            outside = outside | (index < 0) | (index >= extent)
        if outside.any():
            self._tell("out-of-bounds", place, whole, outside, f"{kind} outside of the block of {whole.name}", _MASK)
        own = tuple(one[inside] for one in places)
        if kind == "load":
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
            if what == "reads" and kind == "load":
                continue
            others = who[own]
            clash = np.zeros(inside.shape, bool)
            clash[inside] = (others != NOBODY) & (others != self._program)
            if self._is_parallel and clash.any():
                rival = int(np.argmax((others != NOBODY) & (others != self._program)))
                other = int(others[rival]), self._places[int(where[own][rival])]
                verb = "reads" if kind == "load" else "writes"
                message = (
                    f"data race on {whole.name}: one program {verb} an element that another one {what}, in no order"
                )
                self._tell("data-race", place, whole, clash, message, "Let each element belong to one program", other)
        if kind == "load":
            whole.reader[own], whole.read_place[own] = self._program, number
        else:
            whole.writer[own], whole.write_place[own] = self._program, number

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


def _block(whole: Whole, mapping: Any, ids: tuple[int, ...], evaluation: Evaluation) -> Reference:
    """The block of an array that a program gets."""
    closed = mapping.index_map_jaxpr
    places = evaluation.run(closed.jaxpr, closed.consts, [np.int32(one) for one in ids])
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
