"""Triton programs where there is no GPU: the debugger's engine executes their launches, the recorder sees kernels.

The times are those of the engine, on the host. They say how often and from where a kernel is launched, and not how fast
a GPU executes it.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

from bragg.code.kernel_files import CODE, COMPILED_FOR_TARGET, FILES
from bragg.core import core
from bragg.debug.compiled.launched_kernels import LaunchedKernels
from bragg.debug.faults import KernelFault
from bragg.debug.host.driver import HostDriver, has_gpu, has_host_driver, use_host_driver
from bragg.debug.host.imports import when_imported
from bragg.debug.host.launch import Launch, prepare
from bragg.debug.host.launch_hooks import called_around
from bragg.debug.host.pytorch.on_cpu import use_cpu_for_cuda
from bragg.debug.host.specialization import specialize
from bragg.debug.state import Listeners
from bragg.debug.switch import redirect
from bragg.debug.targets import target_named
from bragg.record.hooks.triton.kernel_names import specialization_of
from bragg.record.hooks.triton.launch_metadata import told_of_launch
from bragg.record.hooks.triton.specialization import specialized_name
from bragg.record.inside import autostart
from bragg.record.inside.metadata import call_kernel_error, count_interpreted_launch, tell, tell_at_stop
from bragg.record.inside.metric_values import record_metrics
from bragg.record.inside.notes import guarded, note

__all__ = ["interpret_launches"]

# Backends of Triton for GPUs; with another one, such as for CPUs, programs need no help.
_GPU_BACKENDS = {"nvidia", "amd"}


def interpret_launches(triton: ModuleType, options: Mapping[str, Any], *, may_move_tensors: bool = True) -> None:
    """Execute the launches of this process with the engine, if that is wanted.

    Args:
        triton: The package, just imported.
        options: What to record, as `RecordConfig.options` lists it; `interpret` is `auto` or `on`.
        may_move_tensors: Tensors that the program asks for on `cuda` are put on the CPU; False: it may have asked for
            some already.
    """
    is_forced = options["interpret"] == "on"
    if not is_forced and (has_gpu() or not _needs_gpu(triton, os.environ)):
        return
    if not has_gpu():
        use_host_driver(target_named(options["gpu_target"]) if options["gpu_target"] else None)
        if may_move_tensors and not _is_imported_by_torch():
            when_imported("torch", use_cpu_for_cuda)
    asks = options["launch_metadata"]
    kernels = _launched_kernels(options["gpu_target"]) if options["gpu_target"] else None

    def run(kernel: Any, grid: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        _execute(prepare(kernel, grid, arguments, named), asks, kernels)

    call_kernel_error(KernelFault)
    redirect(run, (lambda: True) if is_forced else has_host_driver)


def _needs_gpu(triton: ModuleType, environ: Mapping[str, str]) -> bool:
    return environ.get("TRITON_INTERPRET") != "1" and set(triton.backends.backends) <= _GPU_BACKENDS


def _launched_kernels(target: str) -> LaunchedKernels:
    """Collects kernels; they are compiled at the end of the process, and the meta says where their code is."""
    kernels, process = LaunchedKernels(target_named(target)), os.getpid()
    places: dict[str, dict[str, str]] = {}

    def compile_all() -> None:
        recording = autostart.current()
        if os.getpid() != process or recording is None:
            return
        recording.deactivate()  # The program does not wait for this.
        try:
            found = kernels.compiled()
        finally:
            recording.activate()
        for name, compiled in found.items():
            if compiled.error:
                note(f"{name} was not compiled for {target}: {compiled.error}")
            else:
                places[name] = {CODE: compiled.key, FILES: compiled.files, **kernels.launched(name)}

    atexit.register(guarded(compile_all))
    tell_at_stop(COMPILED_FOR_TARGET, lambda is_end: places)
    tell("target", target)
    return kernels


def _execute(launch: Launch, asks: bool, kernels: LaunchedKernels | None) -> None:
    """Execute a launch as a kernel of the call path, between the hooks of the program."""
    if count_interpreted_launch() == 1:
        note("Triton kernels run in bragg's interpreter on the CPU: their times are not those of a GPU")
    compiled = specialize(launch, HostDriver().get_current_target())
    function = getattr(launch.jitted, "launch_metadata", None)
    given = (launch.grid, compiled.metadata, launch.arguments)
    name, values, arrays = told_of_launch(function, *given) if asks and function else (None, [], {})
    shown = name or _name(compiled)
    if kernels is not None:
        kernels.add(shown, launch)
    with called_around(compiled.name, function, given):
        core.enter_host_kernel(shown)
        try:
            for metric, value in values:
                core.add_value(metric, value)
            record_metrics(arrays)
            launch.run(Listeners())
        finally:
            core.exit_host_kernel()


def _name(compiled: SimpleNamespace) -> str:
    """As the kernel is called on a GPU."""
    if compiled.name != compiled.src.fn.__name__:  # chosen by the program: @triton.jit(repr=...)
        return str(compiled.name)
    return specialized_name(compiled.name, specialization_of(compiled))


def _is_imported_by_torch() -> bool:
    """PyTorch's compiler imports Triton for any program: one that does not itself has asked for no GPU."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if str(frame.f_globals.get("__name__", "")).startswith("torch."):
            return True
    return False
