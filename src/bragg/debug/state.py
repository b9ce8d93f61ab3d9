"""What the engine is doing right now: the programs of the batch and who listens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.flow.ways import TypesQuestion
    from bragg.debug.memory.storage import Buffer
    from bragg.debug.numbers.dtypes import DType
    from bragg.debug.targets import Target


@dataclass
class Listeners:
    """Functions that are called with what a kernel does; where there are none, nothing is spent.

    Attributes:
        access: Of every load, store and atomic, before it happens: a `bragg.debug.memory.access.Access`.
        out_of_bounds: Of lanes outside their tensor; (access, lanes outside); says whether somebody is told of them. If
            nobody is, the kernel ends.
        tainted: Of a use of elements that must not be used; (use, taint, bit, the tensor or None).
        overflow: Of signed integers that do not fit; (their type, the first number that does not).
        division: Of integer divisions, with the divisor; may give bool [programs or 1, *block]: lanes without a result.
        shift: Of integers shifted by amounts that may be too large; (amount, bits of the integer); gives such lanes.
        result: Of every floating result of an operation; (inputs, result).
        flagged: Of arithmetic that makes NaN of other numbers, or infinity of finite ones, in any lane; (NumPy's word:
            `invalid value`, `overflow`, `divide by zero`).
        hint: Of multiple_of and the like; (name, value, promised); gives the lanes that break the promise, or None.
        differs: Of code that a GPU treats differently; (message, hint, Triton compiles it to the same).
        types: Asks the compiler for types on ways of the kernel that no program goes; None: nobody does.
        decision: Of programs that decide by what atomics have returned; (their linear numbers).
        meeting: Of programs whose threads wait for each other; (their linear numbers).
        step: After every trip of a loop and every batch; (programs that have ended).
        pointed: Of addresses from which pointers are made; int64.
        asynchronous: Of copies and products that run beside a Gluon kernel: `bragg.debug.gluon.asynchrony`.
        end: After the launch, when its results are in the tensors.
        target: The GPU that the kernel is for; None: any.
        is_resident: No more programs than the target holds at once are under way.
        is_wide: Conversions to floats give float64, whatever the kernel asks for.
        garbage: Of lanes that the mask of a load leaves out without a value; None: they are marked as undefined.
        left_out: Lanes that the mask of a load leaves out with a value are left out of reductions, too; (their taint
            where they hold another value; the one that changes nothing). None: they count like all others.
    """

    access: Sequence[Callable[[Any], None]] = ()
    out_of_bounds: Sequence[Callable[[Any, Array], bool]] = ()
    tainted: Sequence[Callable[[str, Array, int, Buffer | None], None]] = ()
    overflow: Sequence[Callable[[DType, int], None]] = ()
    division: Sequence[Callable[[Any], Array | None]] = ()
    shift: Sequence[Callable[[Any, int], Array | None]] = ()
    result: Sequence[Callable[[tuple[Any, ...], Any], None]] = ()
    flagged: Sequence[Callable[[str], None]] = ()
    hint: Sequence[Callable[[str, Any, Any], Array | None]] = ()
    differs: Sequence[Callable[[str, str, bool], None]] = ()
    types: TypesQuestion | None = None
    decision: Sequence[Callable[[Array], None]] = ()
    meeting: Sequence[Callable[[Array], None]] = ()
    returned: Sequence[Callable[[Any], None]] = ()
    compared: Sequence[Callable[[str, Any, Any, Any], None]] = ()
    step: Sequence[Callable[[int], None]] = ()
    pointed: Sequence[Callable[[Array], None]] = ()
    asynchronous: Sequence[Any] = ()
    end: Sequence[Callable[[], None]] = ()
    target: Target | None = None
    is_resident: bool = False
    is_wide: bool = False
    garbage: np.random.Generator | None = None
    left_out: Callable[[Array, float], None] | None = None

    def add(self, others: Listeners) -> None:
        """Call what others call, too."""
        self.is_resident |= others.is_resident
        for name in compress(_CALLED, _called_of(others)):
            setattr(self, name, (*getattr(self, name), *getattr(others, name)))

    def arithmetic(self) -> AbstractContextManager[None]:
        """NumPy prints no warnings, and reports flags where somebody listens."""
        if not self.flagged:
            return np.errstate(all="ignore")
        return np.errstate(under="ignore", divide="call", invalid="call", over="call", call=self._tell_flag)

    def _tell_flag(self, what: str, _flags: int) -> None:
        for listener in self.flagged:
            listener(what.removesuffix(" encountered"))

    def tell_step(self, n_ended: int = 0) -> None:
        """Report that programs still run, and how many have ended."""
        for listener in self.step:
            listener(n_ended)

    def tell_difference(self, message: str, hint: str, *, compiles: bool = False) -> None:
        """Tell of code that a GPU treats differently.

        Args:
            message: What is different.
            hint: What to write instead.
            compiles: Triton compiles it, to what it does here.
        """
        for listener in self.differs:
            listener(message, hint, compiles)


_CALLED = tuple(one.name for one in fields(Listeners) if one.default == ())
_called_of = attrgetter(*_CALLED)


class Machine:
    """One batch of programs at a point of the kernel.

    Attributes:
        grid: Programs along the three axes.
        linear: int64 [batch]: number of each program of the batch, axis 0 fastest.
        rows: intp [active]: positions in the batch that execute the current statement, ascending.
        listeners: Called with what happens.
        num_warps: Of each program, as the launch asks for; only kernels that ask for it see it.
        largest_block: Most elements of a block that was loaded or stored; sizes the next batch.
        is_plain: One program executes the code of a function as Python made it, whose conditions must be Python's.
        turn: Gives the turn to another program; None when programs do not wait for each other.
        after_atomic: Is called when an atomic operation has changed memory; None: nobody need know.
        writes: How often memory was changed; tells whether programs that wait make progress.
        moves: How often a loop that gives its turn away had changed its own names.
        operations: Results of floating arithmetic since somebody has set it to 0.
        may_cancel: Two blocks with taints were combined by `^`, which takes out what stands on both sides.
        found: Tensors that pointers from memory lead to; kept as long as the batch.
    """

    def __init__(self, grid: tuple[int, int, int], linear: Array, listeners: Listeners, num_warps: int = 4) -> None:
        self.grid = grid
        self.linear = linear
        self.rows: Array = np.arange(len(linear))
        self.listeners = listeners
        self.num_warps = num_warps
        self.largest_block = 1
        self.is_plain = False
        self.turn: Callable[[], None] | None = None
        self.after_atomic: Callable[[], None] | None = None
        self.writes = 0
        self.moves = 0
        self.operations = 0
        self.may_cancel = False
        self.found: list[Any] = []

    @property
    def active_programs(self) -> Array:
        """int64 [active]: linear numbers of the programs that execute the current statement."""
        return self.linear if len(self.rows) == len(self.linear) else self.linear[self.rows]

    def program_ids(self, axis: int) -> Array:
        """int32 [active]."""
        x, y, _ = self.grid
        linear = self.active_programs
        numbers = (linear % x, linear // x % y, linear // (x * y))[axis]
        return numbers.astype(np.int32)

    def tell_decision(self, taint: Array | None, signal: int) -> None:
        """Tell of the active programs that decide by elements with a taint, where some come from atomics.

        Args:
            taint: Of a condition, of a mask or of addresses: uint8 or uint32 [programs or 1, *block]; None: none.
            signal: The bit that says so.
        """
        if taint is None or not self.listeners.decision:
            return
        decides: Array = np.any((taint & signal).reshape(len(taint), -1), axis=1) if taint.size > 1 else taint & signal
        if decides.any():
            active = self.active_programs
            for listener in self.listeners.decision:
                listener(active if len(decides) == 1 else active[decides])

    def tell_meeting(self) -> None:
        """Tell that the threads of each active program wait for each other: at a barrier, or to exchange values."""
        for listener in self.listeners.meeting:
            listener(self.active_programs)

    def require_type(self, dtype: DType) -> None:
        """Make sure that the target has a type.

        Raises:
            KernelFault: It does not.
        """
        target = self.listeners.target
        if dtype.minifloat is not None and target and target.float8 and dtype.name not in target.float8:
            known = ", ".join(sorted(target.float8))
            raise KernelFault(
                f"type {dtype} not supported in this architecture: {target.name} has {known}",
                hint="Choose the GPU that the kernel is for: --target, or any",
            )

    def tell_taint(self, use: str, taint: Array | None, bit: int, buffer: Buffer | None = None) -> None:
        """Tell of elements that must not be used where some are among those that are used.

        Args:
            use: What is done with them.
            taint: Of the elements, uint8 or uint32 [programs or 1, *block]; None: none is tainted.
            bit: Why they must not be used.
            buffer: The tensor that is accessed by them; None: none is.
        """
        if taint is not None and self.listeners.tainted and (taint & np.uint32(bit)).any():
            for listener in self.listeners.tainted:
                listener(use, taint, bit, buffer)


_machine: Machine | None = None


def machine() -> Machine:
    """The machine that executes the current kernel.

    Raises:
        KernelFault: No kernel is being executed.
    """
    if _machine is None:
        raise KernelFault("a function of triton.language was called outside of a kernel")
    return _machine


def tell_result(operands: tuple[Any, ...], result: Any) -> None:
    """Tell of a floating result, where a kernel is executed."""
    if _machine is not None:
        for listener in _machine.listeners.result:
            listener(operands, result)


def is_wide() -> bool:
    """Floats are to be float64 now: a kernel is executed to see what its own types lose."""
    return _machine is not None and _machine.listeners.is_wide


def use(new: Machine | None) -> Machine | None:
    """Make a machine the current one; returns the one before."""
    global _machine
    before, _machine = _machine, new
    return before


def leaves_out() -> Callable[[Array, float], None] | None:
    """Is told of lanes that are left out of reductions since a mask left them out; None: they count.

    It gets their taint, uint8 or uint32 [programs or 1, *block], and the value that changes nothing there.
    """
    return None if _machine is None else _machine.listeners.left_out


def each_tracker() -> Sequence[Any]:
    """Who keeps account of what runs beside a Gluon kernel; mostly nobody."""
    return machine().listeners.asynchronous


_launches = 0


def begin_launch() -> None:
    """What was found out for one launch, and may have changed since, no longer holds."""
    global _launches
    _launches += 1


def launch_number() -> int:
    """Of the launch that is under way, or was the last."""
    return _launches
