"""Every access of a Pallas kernel is looked at: bounds, elements that nobody has written, races of programs."""

from __future__ import annotations

import linecache
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bragg.debug.findings import KernelFinding, TensorFacts, Witness, program_ids
from bragg.debug.numbers.dtypes import dtype_of_array
from bragg.debug.pallas.references import NOBODY, Reference, Whole
from bragg.debug.verdicts import Verdict
from bragg.model import Severity
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.report import Report

_MASK = "Compare the index with the extent of the block, or let the block be larger"


class Watcher:
    """One call of a kernel, as its accesses are looked at.

    Attributes:
        kernel: Its name.
        grid: Programs along each axis, the last one fastest.
        program: Number of the one that runs.

    Args:
        source: The kernel's function, as jaxprs tell it.
        grid: Programs along each axis.
        report: Where findings go.
        checkers: Names of those that watch.
        is_parallel: Programs run at the same time.
    """

    def __init__(
        self, source: str, grid: tuple[int, ...], report: Report, checkers: frozenset[str], *, is_parallel: bool
    ) -> None:
        self.grid, self.program = grid, 0
        self.kernel, self._home = source.split(" at ")[0], home_of(source)
        self._report, self._checkers, self._is_parallel = report, checkers, is_parallel
        self._places: list[tuple[str, int]] = []
        self._additions = report.additions
        report.launches += 1
        report.programs += math.prod(grid)

    def judge(self) -> None:
        """The call has ended."""
        verdict = "finding" if self._report.additions > self._additions else "clean"
        because = "" if verdict == "finding" else "Pallas kernels are executed, not proven"
        self._report.verdicts.counts[Verdict(self.kernel, verdict, because)] += 1

    def see(self, kind: str, reference: Reference, block: tuple[Array, ...], mask: Any, equation: Any) -> None:
        """An access is about to happen; `block` holds int64 indices of its shape, see `Evaluation`."""
        whole = reference.whole
        place = self.place(equation)
        places, inside = reference.places(block)
        outside = np.zeros(inside.shape, bool)
        for index, extent in zip(block, reference.shape, strict=True):
            outside = outside | (index < 0) | (index >= extent)
        inside, outside = inside & mask, outside & mask
        if outside.any():
            word = "load" if kind == "choice" else kind
            self.tell("out-of-bounds", place, whole, outside, f"{word} outside of the block of {whole.name}", _MASK)
        own = tuple(one[inside] for one in places)
        if kind in ("load", "atomic"):
            unwritten = np.zeros(inside.shape, bool)
            unwritten[inside] = ~whole.is_written[own]
            if unwritten.any():
                message = f"load of elements of {whole.name} that were never written"
                self.tell("uninitialised-read", place, whole, unwritten, message, "Write them first")
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
            is_other = (others != NOBODY) & (others != self.program)
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
                self.tell("data-race", place, whole, clash, message, "Let each element belong to one program", other)
        if kind in ("load", "choice"):
            whole.reader[own], whole.read_place[own] = self.program, number
        else:
            whole.writer[own], whole.write_place[own] = self.program, number
            whole.is_atomic[own] = kind == "atomic"

    def tell(
        self,
        rule: str,
        place: tuple[str, int],
        whole: Whole,
        lanes: Array,
        message: str,
        hint: str,
        other: tuple[int, tuple[str, int]] | None = None,
    ) -> None:
        """Report a finding of the program that runs.

        Args:
            rule: Name of the checker.
            place: File and line.
            whole: The array.
            lanes: Which lanes of the access show it: bool, in its shape.
            message: What is wrong.
            hint: What to do about it.
            other: The program on the other side of a race, and its file and line.
        """
        if rule not in self._checkers:
            return
        grid = _three(self.grid)
        number = _linear(self.program, self.grid)
        known = dtype_of_array(str(whole.data.dtype))
        dtype = known.name if known else str(whole.data.dtype)
        strides = tuple(stride // whole.data.itemsize for stride in whole.data.strides)
        found = np.flatnonzero(lanes)
        conflict: dict[str, Any] | None = None
        if other is not None:
            rival, (file, line) = other
            code = linecache.getline(file, line).strip()
            ids = program_ids(_linear(rival, self.grid), grid)
            conflict = {"program": list(ids), "file": file, "line": line, "code": code, "why": ""}
        finding = KernelFinding(
            rule,
            Severity.ERROR,
            message,
            hint,
            kernel=self.kernel,
            file=place[0],
            line=place[1],
            tensor=TensorFacts(whole.name, dtype, whole.data.shape, strides),
            witness=Witness(program_ids(number, grid), int(found[0])),
            grid=grid,
            other=conflict,
        )
        key = (rule, self.kernel, *place, whole.name, "" if rule == "data-race" else message)
        self._report.add(finding, key, [number], len(found), found.tolist())

    def place(self, equation: Any) -> tuple[str, int]:
        """File and line of an equation; those of the kernel where it does not tell."""
        place = line_of(equation) or self._home
        if place not in self._places:
            self._places.append(place)
        return place


def line_of(equation: Any) -> tuple[str, int] | None:
    """File and line of the author that an equation comes from; None: it does not tell."""
    from jax._src import source_info_util

    source = equation.source_info
    try:
        frame = source_info_util.user_frame(source.traceback)
    except AttributeError:  # Until JAX 0.7 it took the whole.
        frame = source_info_util.user_frame(source)
    return None if frame is None else (frame.file_name, int(frame.start_line))


def home_of(text: str) -> tuple[str, int]:
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
