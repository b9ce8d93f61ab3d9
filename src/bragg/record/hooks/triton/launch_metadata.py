"""Launches that say what they do: the functions that kernels give to `@triton.jit(launch_metadata=...)`.

What a function returns is the launch's: `name` renames it, every number (`flops16`, `bytes`, ...) is a metric of it.
"""

from __future__ import annotations

from bragg.core import core
from bragg.record.inside.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


_failed: set[str] = set()
_hooks: list[Any] = []
_wanted: Callable[[str], bool] | None = None


def ask_launches(triton: ModuleType) -> Callable[[], None]:
    """Ask each launch of a kernel that has a function for it.

    Returns:
        What undoes it.
    """
    runtime = triton.knobs.runtime
    previous = runtime.launch_enter_hook
    hook = core.LaunchHook(_metric_value, _record, _report, previous)
    hook.choose(_wanted)
    _hooks.append(hook)
    ours = _like(previous, hook) if hasattr(previous, "calls") else hook
    runtime.launch_enter_hook = ours
    undo_loading = _load_before_asking(triton.compiler.CompiledKernel)

    def undo() -> None:
        if runtime.launch_enter_hook is ours:
            runtime.launch_enter_hook = previous
        _hooks.remove(hook)
        undo_loading()

    return undo


def choose_kernels(wanted: Callable[[str], bool] | None) -> None:
    """Ask only kernels whose name is wanted; a launch that renames itself must be wanted under its new name too.

    Args:
        wanted: None: every kernel.
    """
    global _wanted
    _wanted = wanted
    for hook in _hooks:
        hook.choose(wanted)


def told_of_launch(
    function: Callable[..., Any], *given: Any
) -> tuple[str | None, list[tuple[int, float]], dict[Any, Any]]:
    """Result of a `launch_metadata` function for one launch: its name, metrics with their values, and arrays."""
    name, values, arrays = None, [], {}
    try:
        for key, value in function(*given).items():
            if key == "name":
                name = str(value)
            elif (found := _metric_value(key, value)) is NotImplemented:
                arrays[key] = value
            elif found is not None:
                values.append(found)
    except Exception as error:  # noqa: BLE001 - the function is the author's
        _report(function, error)
    return name, values, arrays


def _like(chain: Any, hook: Callable[[Any], Any]) -> Any:
    """A chain with the calls of another one, present and future ones, and `hook` before them.

    It does not count the hook as a call. PyTorch launches the kernels that it generates on a slow path as soon as there
    are calls, and they have no metadata.
    """
    ours: Any = type(type(chain).__name__, (type(chain),), {"__call__": hook})
    like = ours.__new__(ours)
    like.__dict__ = chain.__dict__
    return like


def _load_before_asking(kernel_class: Any) -> Callable[[], None]:
    """Triton 3.4 says what it launches before it has loaded it, so that the first launch lacks its function."""
    launch_metadata = kernel_class.launch_metadata
    if "_init_handles" in launch_metadata.__code__.co_names:
        return lambda: None

    def launch_metadata_of_loaded(kernel: Any, *arguments: Any) -> Any:
        kernel._init_handles()
        return launch_metadata(kernel, *arguments)

    kernel_class.launch_metadata = launch_metadata_of_loaded
    return lambda: setattr(kernel_class, "launch_metadata", launch_metadata)


def _metric_value(key: Any, value: Any) -> Any:
    """Metric and number of an entry of a launch's metadata; None: it is not a number; NotImplemented: it is an array.

    Numbers of operations are fractional and bytes whole, whatever the function calculates them with.

    Raises:
        UsageError: The key says too much.
    """
    from bragg.record.inside.metric_values import declare_beside, parse_label

    if isinstance(value, (list, tuple)) or hasattr(value, "data_ptr") or hasattr(value, "__cuda_array_interface__"):
        return NotImplemented
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, (int, float)):
        return None
    label = parse_label(key)
    is_float = label.name.startswith("flops") or (isinstance(number, float) and label.name != "bytes")
    metric, holds_floats = declare_beside(label, (True,) if is_float else (False, True))
    return metric, float(number) if holds_floats else int(number)


def _record(arrays: dict[Any, Any]) -> None:
    """Add lists and tensors; those on a GPU are read when the GPU gets there."""
    from bragg.record.inside.metric_values import record_metrics

    record_metrics(arrays)


def _report(function: Any, error: BaseException) -> None:
    """Say once that a function failed; its launches are recorded without it."""
    name = getattr(function, "__qualname__", str(function))
    if name not in _failed:
        _failed.add(name)
        note(f"the launch metadata of {name} is not recorded: {type(error).__name__}: {error}")
