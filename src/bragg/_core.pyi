"""The native core: context stacks, sessions, backends. `bragg.record` is its only user."""

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, TracebackType
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

class Scope:
    """A named region: context manager and decorator. Reusable and re-entrant.

    Each time it is entered, `metrics` are added to it; see `bragg.record.inside.metric_values.record_metrics`.
    """

    name: str
    def __init__(self, name: str, metrics: Mapping[str, Any] | None = None) -> None: ...
    def __enter__(self) -> Scope: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def __call__(self, function: _F) -> _F: ...

class Session:
    """One recording: a capture file that fills until `stop`.

    With a rotation interval the next phase begins by itself, in `<part_path without .part>.part_<number>.part`.

    Raises:
        ValueError: `options` is not a JSON object of plain values, or an option has no such choice.
        OSError: `part_path` cannot be created (errno set).
        RuntimeError: The backend is not available; the message says why and what to do.
    """

    id: int
    active: bool
    def __init__(
        self,
        part_path: str,
        options: str,
        *,
        meta: str = "{}",
        cupti_candidates: Sequence[str] = (),
    ) -> None: ...
    def activate(self) -> None: ...
    def deactivate(self, flush: bool = True) -> None: ...
    def flush(self) -> None: ...
    def advance(self, part_path: str, *, meta: str, end_meta: str) -> None:
        """Record the next phase, into a capture of its own.

        A kernel belongs to the phase it was launched in: the capture before ends when their records have come.
        At most 15 wait for theirs; one more advance waits for the first of them.
        """

    def stop(self, meta: str = "{}") -> None: ...
    def statistics(self) -> dict[str, Any]: ...

def enter_scope(name: str) -> int: ...
def exit_scope() -> None: ...
def describe_scope(name: str, key: str, value: str) -> None:
    """Attach an attribute to the scopes of this name."""

def describe_operator(name: str, key: str, value: str) -> None:
    """Attach an attribute to the operators of this name, among them modules of XLA."""

def enter_state(name: str) -> None:
    """Like `enter_scope`, for a frame of kind state: a label of what happens below it, without a time of its own."""

def exit_state() -> None: ...
def enter_host_kernel(name: str) -> None:
    """Like `enter_scope`, for a kernel that this thread executes without a GPU: a leaf, whatever runs until its end."""

def exit_host_kernel() -> None: ...
def context_depth() -> int: ...
def metric(name: str, kind: str = "inclusive", unit: str = "", is_float: bool = True) -> int:
    """The id of a metric of the program: its kind is inclusive, exclusive or property.

    Raises:
        ValueError: The name has another type, kind or unit already.
    """

def add_value(metric: int, value: float) -> None:
    """Add to a metric at this thread's innermost open scope, operator or state, else at where it is.

    Nothing happens while nothing records.
    """

def add_vector(metric: int, values: Sequence[float]) -> None: ...
def add_device_value(metric: int, pointer: int, dtype: str, length: int, stride: int, stream: int) -> None:
    """Add numbers in GPU memory to a metric at this thread's innermost open scope, operator or state.

    They are read on the GPU, when `stream` gets there, and counted later: nothing waits for the stream or the device.
    Memory that is freed in the order of the stream, as caching allocators do, may be freed as soon as this returns.
    While the stream is being captured into a graph, the numbers are read again, and counted, at each replay.

    Args:
        metric: From `metric`.
        pointer: Address of the first number.
        dtype: f16, bf16, f32, f64, i8, i16, i32, i64, u8 or bool.
        length: Of a vector; 0 is a scalar.
        stride: Between elements, in elements.
        stream: A `CUstream` of the memory's device; 0 is the default stream.

    Raises:
        ValueError: The dtype is unknown.
        RuntimeError: The reason why it cannot be read.
    """

def name_kernel(function: int, name: str | None, symbol: str = "", attributes: Sequence[tuple[str, str]] = ()) -> None:
    """From now on launches of a kernel are shown as `name`.

    Args:
        function: The driver's handle, a `CUfunction`.
        name: None forgets what it was called.
        symbol: The kernel's own name, which guards against a handle that was reused; empty is any.
        attributes: Keys and values that describe the kernel.
    """

def expect_launch(function: int, name: str | None, values: Sequence[tuple[int, float]] = ()) -> None:
    """Say of this thread's next launch of `function` what it is called and which metric values its node gets."""

class LaunchHook:
    """What Triton calls before each launch. Of a launch that has metadata it takes the name and the numbers.

    The functions that give the metadata run in the state `__proton_launch_metadata:<kernel>`.
    """

    def __init__(
        self,
        convert: Callable[[Any, Any], Any],
        record: Callable[[dict[Any, Any]], object],
        report: Callable[[Any, BaseException], object],
        then: Callable[[Any], object] | None = None,
    ) -> None:
        """Make a hook.

        Args:
            convert: Metric and number of a key and its value; None: it is no metric; NotImplemented: `record` takes it.
            record: Adds metrics where the thread is, which is then the node of the kernel.
            report: Called with a function that gives metadata and what it raised.
            then: The hook to call next. If it has a list `calls`, it is not called while that is empty.
        """

    def choose(self, wanted: Callable[[str], bool] | None, /) -> None:
        """Ask only kernels whose name is wanted; None: all. The answers are kept."""

    def __call__(self, metadata: Any, /) -> None: ...

def note_own_thread() -> None:
    """The calling thread is the recorder's: the process ends when the program's own threads have."""

def sampled_threads() -> dict[str, int]:
    """For how long samples found other threads than the main one in Python, by name, ns: since sampling began."""

def hurry() -> None:
    """The process was told to end: from now on nothing waits long for the GPU."""

def finish_on_signal(number: int) -> bool:
    """Finish all sessions when a signal ends the process; False when the program handles or ignores the signal.

    It works while the main thread is blocked, and Python still sees the default handler.
    """

def collective_progress() -> list[tuple[str, str, int, int]]:
    """Of each process group how many collectives this process has entered: group, the last one, how many, when.

    The time is CLOCK_MONOTONIC, ns.
    """

def recording() -> bool: ...
def library_path() -> str: ...
def record_nvtx(wanted: bool) -> None:
    """Whether NVTX ranges and marks that begin from now on are recorded; they are at first.

    Once NVTX has loaded the core, its variable cannot keep ranges away any more.
    """

def lend_context() -> None:
    """Threads without a context of their own inherit this thread's, until `return_context`."""

def return_context() -> None: ...
def follow_autograd(
    library: str, *, counts_references_itself: bool, number_offset: int, thread_offset: int, thread_number: int
) -> bool:
    """Show what the engine of autograd runs below the operators that it is the backward of, from now on.

    Args:
        library: Path of the loaded library that has the engine.
        counts_references_itself: Nodes are held by `c10::intrusive_ptr` rather than by `std::shared_ptr`.
        number_offset: Where in a node its sequence number is, B.
        thread_offset: Likewise, the number of the thread that made it.
        thread_number: The number of this thread.

    Returns:
        False when the library lacks a function, or says that this thread has another number.
    """

def begin_operator_trial(library: str) -> str:
    """Observe this thread's operators, to see whether PyTorch calls observers as expected; nothing is recorded.

    Args:
        library: Path of PyTorch's loaded library.

    Returns:
        Why it cannot be tried; empty when it is.
    """

def end_operator_trial(operator_name: str) -> str:
    """What was not as expected of the one operator that this thread ran since; empty when all was."""

def begin_input_trial(first: tuple[int, int, int], second: tuple[int, int, int]) -> None:
    """Learn how operators tell their tensors, from this thread's next one: its inputs are a list of two and a number.

    Args:
        first: Addresses of a tensor, of its storage and of its data.
        second: Likewise.
    """

def end_input_trial(output: tuple[int, int, int]) -> bool:
    """Whether it was learned, given what the operator returned; operators observed with shapes then tell who made them.

    See `bragg.model.InputTable`.
    """

def set_operator_cost(ns: int) -> None:
    """What PyTorch pays for one operator because it is observed, outside the core, in ns."""

def observe_operators(shapes: bool) -> bool:
    """Record operators of all threads through observers from now on, after a trial that went well.

    Args:
        shapes: With shapes and types of their tensors in their names.

    Returns:
        False when shapes are wanted and cannot be told.
    """

def stop_observing_operators() -> None: ...
def watch_arguments(object: object, watch: Callable[..., bool]) -> bool:
    """Show arguments of the next calls of an object that is followed to a function, until that returns no True.

    Returns:
        False when the object is not followed.
    """

def follow_calls(object: object, name: str, are_steps: bool = True) -> bool:
    """Show calls of an object that implements the vectorcall protocol as an operator, unless one such call is open.

    Args:
        object: What is called.
        name: Of the operator.
        are_steps: Whether its calls may be the steps of the program.

    Returns:
        False when it does not implement it.
    """

def enter_call(name: str) -> bool:
    """Begin an operator, as a call of a followed object does.

    Returns:
        False when one such call is open on this thread, or none is recorded; then there is nothing to end.
    """

def exit_call() -> None: ...
def enter_callback() -> bool:
    """Let calls be operators again in what a call that is open calls back.

    Returns:
        False when no call is open on this thread; then there is nothing to end.
    """

def exit_callback() -> None: ...
def count_call_steps(wanted: bool) -> None:
    """Whether times are kept from the end of one call of a function to the end of its next, from now on."""

def read_call_steps() -> dict[str, dict[str, Any]]:
    """These times by function, with the keys of `bragg.record.inside.regions.Times`; `called_ns` lacks the longest."""

def record_followed_calls(wanted: bool) -> None:
    """Whether calls of followed objects are recorded; they are not at first."""

def read_xla(wanted: bool) -> None:
    """Show ranges of XLA as modules, scopes and operations from now on, or as they are."""

def now_ns() -> int:
    """Time since the epoch by the recorder's clock, which nobody sets while the process runs."""

def flush_device_records() -> None:
    """Wait for the GPU and bring what is complete, before another user of CUPTI's buffers comes."""

def reclaim_device_records() -> None:
    """Be the user of CUPTI's buffers again, after another one (torch.profiler) in this process is done."""

def probe_cuda(cupti_candidates: Sequence[str] = ()) -> dict[str, Any]:
    """What the CUDA backend would find: driver, CUPTI path and version, slot holder. Initialises CUDA."""

def list_counters(cupti_candidates: Sequence[str] = ()) -> dict[str, Any]:
    """What hardware counters the first GPU has, as JSON. In a process of its own: it takes seconds."""

def read_cubin(image: bytes) -> dict[str, Any]:
    """The tables of native/symbols/cubin.h; numbers are the bytes of uint32 columns, 0xFFFFFFFF is unknown.

    Raises:
        ValueError: It is no cubin, or a damaged one.
    """

def demangle(symbol: str) -> str:
    """The C++ name of a mangled symbol; everything else as it is."""

def _can_unwind() -> bool:
    """False: native frames cannot be read on this processor."""

# For tests and benchmarks.

def _walk_available() -> bool:
    """False: this interpreter's frames cannot be read, so contexts are those of `shadow`."""

def _walk() -> list[tuple[str, str, int]]:
    """The caller's Python frames, innermost first: qualified name, file, line."""

def _line_of(code: CodeType, instruction_offset: int) -> int: ...
def _walk_ns(repetitions: int) -> float: ...
