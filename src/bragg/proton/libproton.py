"""Drop-in for `triton._C.libproton.proton`, the functions below Proton's interface."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from bragg.formats.encodings import msgpack
from bragg.proton.errors import InvalidArgument
from bragg.proton.metric import (
    DOUBLE_INDEX,
    DOUBLE_VECTOR_INDEX,
    INT64_INDEX,
    INT64_VECTOR_INDEX,
    TensorMetric,
)
from bragg.proton.output.view import proton_tree
from bragg.proton.recording import metric_values, open_scopes, sessions
from bragg.proton.recording.settings import PROFILERS, Settings
from bragg.proton.state import (
    COMPUTE_METADATA_SCOPE_NAME,
    COMPUTE_METADATA_SCOPE_PREFIX,
    enter_state,
    exit_state,
)

__all__ = [
    "TensorMetric",
    "activate",
    "activate_all",
    "add_metrics",
    "advance_data_phase",
    "clear_data",
    "deactivate",
    "deactivate_all",
    "destroy_function_metadata",
    "enter_instrumented_op",
    "enter_op",
    "enter_scope",
    "enter_state",
    "exit_instrumented_op",
    "exit_op",
    "exit_scope",
    "exit_state",
    "finalize",
    "finalize_all",
    "get_available_profilers",
    "get_context_depth",
    "get_data",
    "get_data_msgpack",
    "has_amd_pc_sampling_source_locations",
    "init_function_metadata",
    "is_data_phase_complete",
    "metadata_scope_name",
    "metadata_scope_prefix",
    "metric_type_double_index",
    "metric_type_int64_index",
    "metric_type_vector_double_index",
    "metric_type_vector_int64_index",
    "proton",
    "record_scope",
    "select_profiler_from_triton_backend",
    "set_metric_kernels",
    "start",
]

metadata_scope_name = COMPUTE_METADATA_SCOPE_NAME
metadata_scope_prefix = COMPUTE_METADATA_SCOPE_PREFIX
metric_type_int64_index = INT64_INDEX
metric_type_double_index = DOUBLE_INDEX
metric_type_vector_int64_index = INT64_VECTOR_INDEX
metric_type_vector_double_index = DOUBLE_VECTOR_INDEX

proton = sys.modules[__name__]  # It is a module of the extension, and stands for both here.

_TRITON_BACKENDS = {"cuda": "cupti", "hip": "rocprofiler"}


def start(path: str, context: str, data: str, profiler: str, mode: str = "") -> int:
    """Start a session; see `bragg.proton.start`."""
    return sessions.start(Settings.of(path, context, data, profiler, mode))


def activate(session: int) -> None:
    """Let a session record again."""
    sessions.find(session).activate()


def activate_all() -> None:
    """Let all sessions record again."""
    for session in sessions.running():
        session.activate()


def deactivate(session: int, flushing: bool = False) -> None:
    """Pause a session."""
    sessions.find(session).deactivate(flushing=flushing)


def deactivate_all(flushing: bool = False) -> None:
    """Pause all sessions."""
    for session in sessions.running():
        session.deactivate(flushing=flushing)


def finalize(session: int, output_format: str) -> None:
    """End a session and write its files."""
    sessions.finalize(session, output_format)


def finalize_all(output_format: str) -> None:
    """End all sessions that are running and write their files."""
    for session in sessions.running():
        sessions.finalize(session.number, output_format)


def record_scope() -> int:
    """An id that no other scope has."""
    return open_scopes.next_id()


def enter_scope(scope_id: int, name: str) -> None:
    """Open a scope on this thread."""
    if open_scopes.is_on():
        open_scopes.enter(name, scope_id=scope_id)


def exit_scope(scope_id: int, name: str) -> None:
    """Close the scope that was opened last on this thread.

    Raises:
        UnbalancedScope: It is another one.
    """
    if open_scopes.is_on():
        open_scopes.leave(open_scopes.last_entered(scope_id))


def enter_op(scope_id: int, name: str) -> None:
    """Open a scope around the launch of a kernel."""
    enter_scope(scope_id, name)


def exit_op(scope_id: int, name: str) -> None:
    """Close the scope around the launch of a kernel."""
    exit_scope(scope_id, name)


def init_function_metadata(
    function_id: int,
    name: str,
    scopes: Sequence[tuple[int, str]],
    parents: Sequence[tuple[int, int]],
    metadata_path: str,
) -> None:
    """Do nothing, as Proton does unless a session measures inside kernels, which none does here."""


def destroy_function_metadata(function_id: int) -> None:
    """Do nothing: nothing was kept of the function."""


def enter_instrumented_op(stream: int, function_id: int, buffer: int, size_bytes: int) -> None:
    """Do nothing, as Proton does unless a session measures inside kernels."""


def exit_instrumented_op(stream: int, function_id: int, buffer: int, size_bytes: int) -> None:
    """Do nothing, as Proton does unless a session measures inside kernels."""


def set_metric_kernels(tensor_kernel: int, scalar_kernel: int, stream: int, *resources: int, **named: int) -> None:
    """Do nothing: values on a device are copied by kernels of the native core.

    Args:
        tensor_kernel: Kernel that would copy a tensor.
        scalar_kernel: Kernel that would copy a number.
        stream: On which they would run.
        resources: Threads and shared memory of these kernels.
        named: The same, by name.
    """


def add_metrics(
    scope_id: int, metrics: Mapping[str, Any], tensor_metrics: Mapping[str, TensorMetric] | None = None
) -> None:
    """Add values to the scope that was opened last on this thread.

    Raises:
        InvalidMetric: A value cannot be recorded.
        UnbalancedScope: `scope_id` is another scope.
    """
    if open_scopes.is_on():
        open_scopes.last_entered(scope_id)
        tensors = {key: metric.tensor for key, metric in (tensor_metrics or {}).items()}
        metric_values.record({**metrics, **tensors})


def get_context_depth(session: int) -> int:
    """Number of scopes that are open on this thread."""
    sessions.find(session)
    return open_scopes.depth()


def get_data(session: int, phase: int) -> str:
    """What was recorded, as JSON."""
    return json.dumps(proton_tree(sessions.find(session).phase_profile(phase)))


def get_data_msgpack(session: int, phase: int) -> bytes:
    """What was recorded, as MessagePack."""
    return msgpack.encode(proton_tree(sessions.find(session).phase_profile(phase)))


def advance_data_phase(session: int) -> int:
    """Begin the next phase."""
    return sessions.find(session).advance_phase()


def is_data_phase_complete(session: int, phase: int) -> bool:
    """Whether a phase is over and all of it is recorded."""
    return sessions.find(session).is_phase_complete(phase)


def clear_data(session: int, phase: int, clear_up_to_phase: bool) -> None:
    """Forget what was recorded in a phase, and before it."""
    sessions.find(session).clear(phase, up_to=clear_up_to_phase)


def get_available_profilers() -> list[str]:
    """Names of what can be asked to measure."""
    return list(PROFILERS)


def select_profiler_from_triton_backend(backend: str) -> str:
    """What measures the devices of one of Triton's backends.

    Raises:
        InvalidArgument: There is no such backend.
    """
    if backend not in _TRITON_BACKENDS:
        raise InvalidArgument(f"No profiler registered for triton backend {backend}")
    return _TRITON_BACKENDS[backend]


def has_amd_pc_sampling_source_locations() -> bool:
    """Whether samples of AMD's instructions know their source lines; there are no such samples yet."""
    return False
