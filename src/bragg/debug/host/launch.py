"""Executes one launch of a kernel: batch after batch of its programs."""

from __future__ import annotations

import inspect
import os
import re
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, StaticAssertion, Unsupported, as_tritons
from bragg.debug.flow.jitted import is_interpreted, is_jitted, python_function
from bragg.debug.flow.place import is_kernel
from bragg.debug.flow.program import Program
from bragg.debug.flow.scheduler import run_in_turns, waits
from bragg.debug.foreign import NestedFunction, executable, translated
from bragg.debug.host.arguments import CONSTANT, Arguments, Parameters, bound
from bragg.debug.host.compiled_launch import CompiledSource
from bragg.debug.host.tuned import refused, tuned
from bragg.debug.lazy import lazy
from bragg.debug.memory.emptiness import has_unwritten
from bragg.debug.memory.shadow import Regions
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners, Machine, begin_launch, use
from bragg.errors import UsageError

# Elements of all blocks of a batch: more leave the second-level cache, fewer pay Python more often.
_BATCH_ELEMENTS = 1 << 18
_FIRST_BATCH = 4
_MOST_PROGRAMS = 1 << 16
# What Python raises for the text of a kernel that Triton does not compile.
_OF_TEXT = (NameError, TypeError, AttributeError)
_MOST_CALLS = 10  # of one function within another: what calls itself without end does so hundreds of times
_NO_RECURSION = "Triton does not compile recursion: write a loop"


@dataclass(frozen=True)
class Call:
    """A launch as the host writes it: `kernel[grid](*arguments, **named)`.

    Attributes:
        kernel: The decorated function, with autotune and heuristics around it.
        grid: As Triton takes it.
        arguments: By position.
        named: By name, with options of the compiler.
        tuner: What `@triton.autotune` has put around the function; None: nothing.
    """

    kernel: Any
    grid: Any
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    tuner: Any = None


@dataclass
class Launch:
    """One launch.

    Attributes:
        jitted: The decorated function, without autotune and heuristics around it.
        program: Its source.
        grid: Programs along the three axes.
        arguments: What the host passed, by parameter.
        options: What it passed to the compiler.
        constants: Parameters that are annotated tl.constexpr.
        types: Types of parameters as Triton writes them, where the function or its compilation fixes them.
        only: The one program to execute; None: all.
        values: What the kernel gets, by parameter.
        call: What the host has written.
        mixes_atomics: Atomics and other accesses went to one tensor, as a checker has seen.
        lanes_meet: Lanes of one program have stored equal values, which came from data, in one element; as a checker
            has seen.
        configurations: With how many of its autotuner it was executed.
    """

    jitted: Any
    program: Program
    grid: tuple[int, int, int]
    arguments: dict[str, Any]
    options: dict[str, Any]
    constants: frozenset[str]
    types: Mapping[str, str]
    only: tuple[int, int, int] | None
    call: Call
    values: dict[str, Any] = field(init=False)
    mixes_atomics: bool = field(init=False, default=False)
    lanes_meet: bool = field(init=False, default=False)
    configurations: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        self._converter = Arguments(is_on_gpu=not is_interpreted(self.jitted))
        self.values = {
            name: translated(value, name)
            if name in self.constants
            else self._converter.convert(name, value, self.types.get(name, ""))
            for name, value in self.arguments.items()
        }

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return self.program.function.__name__

    @property
    def buffers(self) -> list[Buffer]:
        """The tensors among the arguments."""
        return self._converter.buffers

    @lazy
    def regions(self) -> Regions:
        """The ranges of memory that they share."""
        return Regions(self.buffers)

    @lazy
    def empty(self) -> dict[int, Buffer]:
        """Those of them with elements that nobody has written, by identity; asked for before the launch runs."""
        return {id(buffer): buffer for buffer in self.buffers if has_unwritten(buffer)}

    @property
    def is_in_host_memory(self) -> bool:
        """The kernel works on the tensors themselves, and on no copies of them."""
        return not self._converter.has_copies

    @property
    def programs(self) -> int:
        """Of the whole grid."""
        x, y, z = self.grid
        return x * y * z

    @property
    def block_sizes(self) -> tuple[str, ...]:
        """The constants, on which sizes of blocks depend."""
        return tuple(repr(self.arguments[name]) for name in sorted(self.constants))

    @property
    def fixed(self) -> dict[str, Any]:
        """Arguments that Triton compiles into the kernel: constants, and None."""
        return {name: value for name, value in self.arguments.items() if value is None or name in self.constants}

    def run(self, listeners: Listeners) -> None:
        """Execute it.

        Args:
            listeners: Called with what the kernel does.

        Raises:
            KernelFault: The kernel does what a GPU cannot compile or survive.
        """
        begin_launch()
        try:
            _run(self, executable(self.program), self.values, listeners)
        finally:
            self._converter.copy_back()

    def run_again(
        self, listeners: Listeners, numbers: Sequence[int] | None = None, values: dict[str, Any] | None = None
    ) -> None:
        """Execute it once more on what memory holds now; tensors that are not in host memory keep what they have.

        Args:
            listeners: Called with what the kernel does.
            numbers: Linear numbers of the programs, in the order in which they run; None: all.
            values: What the kernel gets, by parameter; None: what it got.

        Raises:
            KernelFault: The kernel does what a GPU cannot compile or survive.
        """
        begin_launch()
        _run(self, executable(self.program), self.values if values is None else values, listeners, numbers)


Observer = Callable[[Launch], Listeners]


def prepare(
    kernel: Any,
    grid: Any,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    only: tuple[int, int, int] | None = None,
) -> Launch:
    """A launch that is ready to be executed.

    Args:
        kernel: A @triton.jit function, also inside of autotune and heuristics.
        grid: As Triton takes it.
        arguments: By position.
        named: By name, with options of the compiler.
        only: Program to execute instead of all.

    Raises:
        UsageError: The launch does not fit the kernel.
    """
    given_named = dict(named)
    jitted, named, tuner = _resolved(kernel, arguments, dict(named))
    call = Call(kernel, grid, arguments, given_named, tuner)
    for hook in getattr(jitted, "pre_run_hooks", ()):
        hook(*arguments, **named)
    fixed = kernel.types if isinstance(kernel, CompiledSource) else _annotated_types(jitted)
    function = python_function(jitted)
    given = bound(_parameters(function, jitted), arguments, named, function.__name__)
    options = {name: value for name, value in named.items() if name not in given}
    _check_warps(options.get("num_warps"))
    constants = _constants(function)
    program = Program.of(function, jitted)
    return Launch(jitted, program, _grid(grid, given), given, options, constants, fixed, only, call)


class OddWarps(UsageError, AssertionError):  # noqa: N818
    """A number of warps that Triton refuses by an assertion."""


def _check_warps(number: Any) -> None:
    if isinstance(number, int) and (number < 1 or number & (number - 1)):
        raise OddWarps(f"num_warps must be a power of 2, not {number}")


def execute(
    kernel: Any,
    grid: Any,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    observe: Observer = lambda launch: Listeners(),
    only: tuple[int, int, int] | None = None,
    forget: Callable[[Launch], None] = lambda launch: None,
    run: Callable[[Launch, Listeners], None] = Launch.run,
) -> Launch:
    """Prepare a launch and run it, with the first configuration of an autotuner whose `tl.static_assert`s hold.

    Args:
        kernel: A @triton.jit function, also inside of autotune and heuristics.
        grid: As Triton takes it.
        arguments: By position.
        named: By name, with options of the compiler.
        observe: Gives the listeners.
        only: Program to execute instead of all.
        forget: Called with a launch that was observed, and whose configuration does not compile.
        run: Executes it.
    """
    while True:
        launch = prepare(kernel, grid, arguments, named, only)
        try:
            run(launch, observe(launch))
        except StaticAssertion:
            if not refused(launch.call.tuner):
                raise
            forget(launch)
        else:
            return launch


def _resolved(kernel: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
    """The jitted function inside of autotune and heuristics, the arguments that they add, and the autotuner."""
    tuner = None
    while not is_jitted(kernel):
        names = {kind.__name__ for kind in type(kernel).__mro__}
        if "Heuristics" in names:
            for parameter, heuristic in kernel.values.items():
                named[parameter] = heuristic({**dict(zip(kernel.arg_names, arguments, strict=False)), **named})
        elif "Autotuner" in names:
            tuner = kernel
            named.update(tuned(kernel, arguments, named))
        elif hasattr(kernel, "asm"):
            raise Unsupported(
                "a kernel that was compiled from MLIR has no Python source and cannot be executed",
                hint="Launch the @triton.jit function that it was made of",
            )
        elif not isinstance(kernel, CompiledSource):
            raise UsageError(f"{kernel!r} is not a Triton kernel", hint="Decorate it with @triton.jit")
        kernel = kernel.fn
    return kernel, named, tuner


_PARAMETERS: weakref.WeakKeyDictionary[types.FunctionType, Parameters] = weakref.WeakKeyDictionary()


def _parameters(function: Any, jitted: Any) -> Parameters:
    """Those of a function; Triton's object for it has them already."""
    if function not in _PARAMETERS:
        own = getattr(jitted, "signature", None) if getattr(jitted, "fn", None) is function else None
        _PARAMETERS[function] = Parameters(own if isinstance(own, inspect.Signature) else inspect.signature(function))
    return _PARAMETERS[function]


_TYPES: weakref.WeakKeyDictionary[types.FunctionType, dict[str, str]] = weakref.WeakKeyDictionary()


def _annotated_types(jitted: Any) -> dict[str, str]:
    """Parameters whose annotation says which type Triton converts a number to, or that they are `tl.const`."""
    function = python_function(jitted)
    if function not in _TYPES:
        parameters = [one for one in getattr(jitted, "params", ()) if one.name in function.__annotations__]
        found = {one.name: CONSTANT if one.is_const else one.annotation_type for one in parameters}
        _TYPES[function] = {name: kind for name, kind in found.items() if kind}
    return _TYPES[function]


@lru_cache(maxsize=256)
def _constants(function: Callable[..., Any]) -> frozenset[str]:
    """Parameters that are annotated tl.constexpr."""
    annotations = getattr(function, "__annotations__", {})
    return frozenset(
        name
        for name, annotation in annotations.items()
        if "constexpr" in (annotation if isinstance(annotation, str) else getattr(annotation, "__name__", ""))
    )


def _grid(grid: Any, given: dict[str, Any]) -> tuple[int, int, int]:
    if callable(grid):
        grid = grid(given)
    extents = list(grid) if isinstance(grid, Sequence) else [grid]
    if not 1 <= len(extents) <= 3:
        raise UsageError(f"a grid has one to three axes, not {len(extents)}")
    padded = [int(extent) for extent in (*extents, 1, 1)[:3]]
    if min(padded) < 0:
        raise UsageError(f"a grid of {tuple(padded)} programs", hint="Count the tiles with triton.cdiv(n, BLOCK)")
    return padded[0], padded[1], padded[2]


def _run(
    launch: Launch,
    executable: Callable[..., Any],
    values: dict[str, Any],
    listeners: Listeners,
    numbers: Sequence[int] | None = None,
) -> None:
    if launch.only is None:
        numbers = range(launch.programs) if numbers is None else numbers
    else:
        first = _linear(launch.only, launch.grid)
        numbers = range(first, first + 1)
    num_warps = int({**launch.arguments, **launch.options}.get("num_warps", 4))  # Gluon's kernels may take it too.
    if launch.program.is_rewritten and waits(launch.program):
        with _placed_faults(launch):
            run_in_turns(launch.grid, numbers, listeners, lambda: executable(**values), launch.kernel, num_warps)
        return
    known = launch.program.largest_blocks
    block = known.get(launch.block_sizes, 0)
    start = 0
    while start < len(numbers):
        size = min(max(_BATCH_ELEMENTS // block, 1), _MOST_PROGRAMS) if block else _FIRST_BATCH
        size = size if launch.program.is_rewritten else 1
        machine = Machine(launch.grid, np.array(numbers[start : start + size]), listeners, num_warps)
        machine.is_plain = not launch.program.is_rewritten
        _run_batch(launch, machine, executable, values)
        start += size
        listeners.tell_step(len(machine.linear))
        block = known[launch.block_sizes] = max(block, machine.largest_block)


def _linear(program: tuple[int, int, int], grid: tuple[int, int, int]) -> int:
    if any(not 0 <= number < extent for number, extent in zip(program, grid, strict=True)):
        raise UsageError(f"the grid {grid} has no program {program}")
    return program[0] + grid[0] * (program[1] + grid[1] * program[2])


def _run_batch(launch: Launch, machine: Machine, executable: Callable[..., Any], values: dict[str, Any]) -> None:
    before = use(machine)
    try:
        with machine.listeners.arithmetic(), _placed_faults(launch):
            executable(**values)
    finally:
        use(before)


@contextmanager
def _placed_faults(launch: Launch) -> Iterator[None]:
    """Faults know their place."""
    try:
        yield
    except RecursionError as error:
        place = _kernel_place(error)
        if not place or not _repeats_functions(error):
            raise
        endless = KernelFault("functions of the kernel call each other without end", hint=_NO_RECURSION)
        endless.place(launch.kernel, *place)
        raise endless from None
    except (KernelFault, Unsupported, *_OF_TEXT) as error:
        fault = _uncompilable(error) if isinstance(error, _OF_TEXT) else error
        place = _kernel_place(error)
        if fault is None or not place:
            raise
        if not fault.kernel:
            fault.place(launch.kernel, *((fault.file, fault.line) if fault.line else place))
        interpreted = is_interpreted(launch.jitted)
        raised = as_tritons(fault, is_interpreted=interpreted) if isinstance(fault, KernelFault) else fault
        if raised is error:
            raise
        raise raised.with_traceback(error.__traceback__) from raised.__cause__


def _uncompilable(error: Exception) -> KernelFault | None:
    """What the text of a kernel itself raises, Triton does not compile; None: something that it calls raised it."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    if trace is None or not (is_kernel(trace.tb_frame) or trace.tb_frame.f_code is NestedFunction.__call__.__code__):
        return None
    return KernelFault(re.sub(r"^[\w.<>]+\(\) ", "the call does not fit: ", str(error)))


def _kernel_place(error: BaseException) -> tuple[str, int] | None:
    """File and line of the innermost kernel frame that is the author's."""
    place, trace = None, error.__traceback__
    while trace:
        if is_kernel(trace.tb_frame) and "triton/language/" not in trace.tb_frame.f_code.co_filename:
            place = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return place


def _repeats_functions(error: RecursionError) -> bool:
    """Whether it is the kernel that calls itself, and not what executes it."""
    called: Counter[types.CodeType] = Counter()
    trace = error.__traceback__
    while trace:
        called[trace.tb_frame.f_code] += is_kernel(trace.tb_frame)
        trace = trace.tb_next
    return max(called.values()) > _MOST_CALLS


def without_engine(error: Exception) -> Exception:
    """An error of a kernel whose traceback shows the author's lines alone; all of it with BRAGG_LOG=debug."""
    if os.environ.get("BRAGG_LOG") == "debug":
        return error
    kept, trace = [], error.__traceback__
    while trace:
        if is_kernel(trace.tb_frame):
            kept.append(trace)
        trace = trace.tb_next
    rest: types.TracebackType | None = None
    for one in reversed(kept):
        rest = types.TracebackType(rest, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return error.with_traceback(rest)
