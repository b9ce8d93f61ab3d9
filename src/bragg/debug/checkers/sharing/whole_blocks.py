"""Accesses to blocks in which no two lanes meet, judged as a whole: each lane takes ten times as long.

What one program has stored to a block, or done to one element by an atomic, is kept as a few numbers until another
block is accessed: programs under a lock are judged by these alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bragg.debug.memory.access import Access
from bragg.debug.memory.shadow import NOBODY, SEVERAL, CellBlock, Cells, State
from bragg.debug.numbers.affine import Affine
from bragg.debug.state import machine
from bragg.model.table import Array


def column(programs: Array, closed: Affine) -> Array:
    """Programs, int [n], shaped to broadcast over a block: int32 [n, 1, ...]."""
    return programs.astype(np.int32).reshape(-1, *[1] * len(closed.shape))


class WholeBlocks:
    """Looks for accesses that come after all that was done to their blocks.

    Args:
        is_ordered: A program comes after what another one did at a step: (program, other, step).
    """

    def __init__(self, is_ordered: Callable[[int, int, int], bool]) -> None:
        self._is_ordered = is_ordered

    def see(self, cells: Cells, access: Access, place: int, step: int) -> bool:
        """An access to cells, from a line and at a step.

        Returns:
            It comes after all that was done, and is remembered. Else the arrays of the cells are up to date.
        """
        closed = access.closed
        block = cells.block(closed, access.buffer.address, access.dtype.size_bytes)
        if closed is None or block is None or (access.kind == "atomic" and not access.is_strong):
            cells.settle()
            return False
        programs = machine().active_programs
        state = self._state(cells, block) if len(programs) == 1 else None
        if state is not None:
            see = self._see_strong if access.is_strong else self._see_plain
            if see(state, access.kind, programs.item(), place, step):
                cells.held = block, state
                return True
        cells.settle()
        return not access.is_strong and self._see_together(block, access.kind, column(programs, closed), place, step)

    @staticmethod
    def _state(cells: Cells, block: CellBlock) -> State | None:
        """What has happened to all cells of a block alike; None: that is not known."""
        if cells.held is not None:
            held, state = cells.held
            if held == block:
                return state
            cells.settle()
        return cells.state_of(block.start) if math.prod(block.shape) == 1 else None

    def _comes_after(self, program: int, other: int, step: int) -> bool:
        return other in (NOBODY, program) or self._is_ordered(program, other, step)

    def _see_plain(self, state: State, kind: str, program: int, place: int, step: int) -> bool:
        if state.changer != NOBODY or not self._comes_after(program, state.writer, state.write_step):
            return False
        if kind == "load":
            state.reader = program if state.reader in (NOBODY, program) else SEVERAL
            state.read_step, state.read_place = step, place
            return True
        if not self._comes_after(program, state.reader, state.read_step):
            return False
        state.writer, state.write_step, state.write_place = program, step, place
        state.is_atomic, state.reader = False, NOBODY
        return True

    def _see_strong(self, state: State, kind: str, program: int, place: int, step: int) -> bool:
        """An atomic of one element, or a volatile load."""
        if not state.is_atomic and not self._comes_after(program, state.writer, state.write_step):
            return False
        if kind == "load":
            return True
        if not self._comes_after(program, state.reader, state.read_step):
            return False
        if state.is_atomic and state.writer != program:
            state.changer, state.change_step, state.change_place = state.writer, state.write_step, state.write_place
        state.writer, state.write_step, state.write_place = program, step, place
        state.is_atomic, state.reader = True, NOBODY
        return True

    def _see_together(self, block: CellBlock, kind: str, programs: Array, place: int, step: int) -> bool:
        """A plain access of several programs, or to cells with different pasts."""
        if not self._comes_after_writers(block, programs):
            return False
        if kind == "load":
            block.mark_read(programs, step, place)
            return True
        if not self._comes_after_readers(block, programs):
            return False
        if len(programs) == 1:
            block.cells.held = block, State(programs.item(), step, place)
        else:
            block.mark_written(programs, step, place)
        return True

    def _comes_after_writers(self, block: CellBlock, programs: Array) -> bool:
        """Nobody has written the block; or one program reads or writes it, which knows of the last writer."""
        cells = block.cells
        writer = block.of(cells.writer)
        if not (writer != NOBODY).any():
            return True
        is_alone = len(programs) == 1 and not (block.of(cells.changer) != NOBODY).any()
        return is_alone and self._knows(programs.item(), writer, block.of(cells.write_step))

    def _comes_after_readers(self, block: CellBlock, programs: Array) -> bool:
        """Nobody else has read the block; or one program writes it, which knows of the last reader."""
        reader = block.of(block.cells.reader)
        if not ((reader != NOBODY) & (reader != programs)).any():
            return True
        return len(programs) == 1 and self._knows(programs.item(), reader, block.of(block.cells.read_step))

    def _knows(self, program: int, others: Array, steps: Array) -> bool:
        """All cells of a block are as nobody, the program itself, or one other that comes before it has left them."""
        other, step = int(others.flat[0]), int(steps.flat[0])
        if (others != other).any():
            return False
        return other in (NOBODY, program) or ((steps == step).all() and self._is_ordered(program, other, step))
