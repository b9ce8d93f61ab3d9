"""Records in kernels that Triton compiles, by the passes that it brings along.

Those for AMD GPUs compile, and their records are read in tests; they were not run on hardware.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bragg.proton.errors import InvalidArgument, ProfilerUnavailable
from bragg.proton.mode import MMA, Default, InstrumentationMode, Optimize

__all__ = ["Kernel", "Passes", "attach", "kernel_of", "mode_of", "plug_in", "require_triton"]

ALIGNMENT = 128
_MODES = {"default": Default, "mma": MMA}
# Triton's packages, by the names of its targets.
_PACKAGES = {"cuda": "nvidia", "hip": "amd"}
_NUMBERS = ("buffer_size",)


@dataclass(frozen=True)
class Kernel:
    """A kernel that was loaded.

    Attributes:
        block_bytes: Memory for the records of a block; 0: it has none.
        warps: Of a block.
        scopes: Names by their numbers.
        parents: Number of the scope around a scope, by its number.
    """

    block_bytes: int
    warps: int
    scopes: Mapping[int, str]
    parents: Mapping[int, int]


def mode_of(given: str | InstrumentationMode | None) -> InstrumentationMode:
    """A mode from its text, `default:option=value:…`.

    Raises:
        InvalidArgument: It is unknown, or Triton's compiler has no passes for it.
    """
    mode = given if isinstance(given, InstrumentationMode) else _parsed(given or "default")
    if mode.granularity.name != "WARP":
        raise InvalidArgument(
            f"granularity={mode.granularity.name.lower()}: Triton's compiler knows that of warps alone",
            hint="Use granularity=warp",
        )
    if mode.buffer_strategy.name != "CIRCULAR":
        raise InvalidArgument(
            "buffer_strategy=flush: Triton's compiler has no passes for it", hint="Use buffer_strategy=circular"
        )
    return mode


def _parsed(text: str) -> InstrumentationMode:
    name, *parts = text.split(":")
    if name not in _MODES:
        raise InvalidArgument(f"Unknown mode: {text}", hint=f"Choose one of: {', '.join(_MODES)}")
    options: dict[str, Any] = {}
    for part in parts:
        option, separator, value = part.partition("=")
        if not separator:
            raise InvalidArgument(f"Malformed instrumentation option: '{part}'", hint="Write option=value")
        options[option] = value
    try:
        options.update({option: int(options[option]) for option in _NUMBERS if option in options})
        return _MODES[name](**options)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(str(error), hint="See the tables of bragg.proton.mode") from error


def require_triton(mode: InstrumentationMode) -> Any:
    """The package of Triton.

    Args:
        mode: What to measure.

    Raises:
        ProfilerUnavailable: It is not there, cannot be given passes, or has no GPU.
    """
    hint = "Use Triton 3.6 to 3.9 and a GPU, or `bragg run --instrument`, which needs no records"
    try:
        import triton
        from triton._C.libtriton import proton  # noqa: F401 - the passes
        from triton.runtime._allocation import set_profile_allocator  # noqa: F401

        backend = triton.runtime.driver.active.get_current_target().backend
        compiler = triton.backends.backends[_PACKAGES[backend]].compiler
    except (ImportError, AttributeError, KeyError, RuntimeError) as error:
        raise ProfilerUnavailable(f"profiler 'instrumentation': {_line(error)}", hint=hint) from error
    if _registry() is None and not hasattr(compiler, "instrumentation"):
        raise ProfilerUnavailable(f"profiler 'instrumentation': Triton {triton.__version__} takes no passes", hint=hint)
    is_global = mode.buffer_type.name == "GLOBAL"
    if backend == "hip" and is_global and triton.__version__.startswith("3.6."):
        raise ProfilerUnavailable(
            "profiler 'instrumentation': the passes of Triton 3.6 for AMD GPUs fail with buffer_type=global",
            hint="Use buffer_type=shared, or Triton 3.7 to 3.9",
        )
    return triton


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def attach(triton: Any, mode: InstrumentationMode, allocator: Callable[..., Any]) -> Callable[[], None]:
    """Let kernels that are compiled from now on have records; what is returned undoes it."""
    from triton.runtime._allocation import NullAllocator, set_profile_allocator

    driver, knobs = triton.runtime.driver.active, triton.knobs.compilation
    target = driver.get_current_target()
    before = knobs.instrumentation_mode
    shared_bytes = driver.utils.get_device_properties(driver.get_current_device())["max_shared_mem"]
    passes = Passes(mode, shared_bytes, target.arch if target.backend == "hip" else None)
    unplug = plug_in(triton, _PACKAGES[target.backend], passes)
    set_profile_allocator(allocator)
    knobs.instrumentation_mode = str(mode)  # a part of the keys of Triton's caches

    def detach() -> None:
        unplug()
        knobs.instrumentation_mode = before
        set_profile_allocator(NullAllocator())

    return detach


def plug_in(triton: Any, package: str, passes: Passes) -> Callable[[], None]:
    """Let a compiler of Triton call passes; what is returned undoes it.

    Args:
        triton: The package of Triton.
        package: `nvidia` or `amd`.
        passes: What it calls.

    Raises:
        ProfilerUnavailable: It calls those of somebody else.
    """
    if (registry := _registry()) is None:
        compiler = triton.backends.backends[package].compiler
        others, compiler.instrumentation = compiler.instrumentation, passes
        return lambda: setattr(compiler, "instrumentation", others)
    taken: list[str] = []

    def unplug() -> None:
        for point in taken:
            registry.unregister_instrumentation(point=point, backend=package)

    try:
        for point, callback in passes.by_point().items():
            registry.register_instrumentation(point=point, backend=package, callback=callback)
            taken.append(point)
    except RuntimeError as error:
        unplug()
        raise ProfilerUnavailable(
            f"profiler 'instrumentation': {_line(error)}", hint="Finalize the session of Proton that measures"
        ) from error
    return unplug


def _registry() -> Any:
    """Where compilers find what to call, since Triton 3.9; None: each has a place of its own."""
    try:
        return import_module("triton._instrumentation")
    except ImportError:
        return None


class Passes:
    """What Triton's compiler calls.

    Args:
        mode: What to measure.
        shared_bytes: Most shared memory of a block.
        amd: Name of an AMD GPU's architecture; None: the GPU is NVIDIA's.
    """

    def __init__(self, mode: InstrumentationMode, shared_bytes: int, amd: str | None = None) -> None:
        self._mode = mode
        self._shared_bytes = shared_bytes
        self._amd = amd

    def load_dialects(self, context: Any) -> None:
        """Let a context know records."""
        from triton._C.libtriton import proton

        proton.load_dialects(context)

    def patch(self, stage: str, passes: Any, context: Any) -> None:
        """Add passes at one of the compiler's two places for them."""
        from triton._C.libtriton import proton

        proton.load_dialects(context)
        if stage == "ttgpuir_to_llvmir":
            self._add_records(passes)
        elif stage == "llvmir_to_llvm":
            self._add_conversion(passes)

    def by_point(self) -> dict[str, Callable[[Any], None]]:
        """What the compilers of Triton 3.9 call, and where."""
        return {
            "load-dialects": self.load_dialects,
            "ttgpuir-to-llvmir": self._add_records,
            "llvmir-to-llvm": self._add_conversion,
        }

    def _add_conversion(self, passes: Any) -> None:
        from triton._C.libtriton import proton

        if allocate := getattr(proton, "add_allocate_proton_global_scratch_buffer", None):  # up to Triton 3.7
            allocate(passes)
        if self._amd is None:
            proton.add_convert_proton_nvidia_gpu_to_llvm(passes)
            return
        if Optimize.SCHED_BARRIERS in self._mode.optimizations:
            proton.add_sched_barriers(passes)
        proton.add_convert_proton_amd_gpu_to_llvm(passes, self._amd.partition(":")[0])

    def _add_records(self, passes: Any) -> None:
        from triton._C.libtriton import passes as known
        from triton._C.libtriton import proton

        mode = self._mode
        proton.add_convert_proton_to_protongpu(
            passes,
            *(
                getattr(kind, choice.name)
                for kind, choice in (
                    (proton.METRIC_TYPE, mode.metric_type),
                    (proton.SAMPLING_STRATEGY, mode.sampling_strategy),
                )
            ),
            mode.sampling_options,
            *(
                getattr(kind, choice.name)
                for kind, choice in (
                    (proton.GRANULARITY, mode.granularity),
                    (proton.BUFFER_STRATEGY, mode.buffer_strategy),
                    (proton.BUFFER_TYPE, mode.buffer_type),
                )
            ),
            mode.buffer_size,
            self._shared_bytes,
            1,
            ALIGNMENT,
            Optimize.CLOCK32 not in mode.optimizations,
        )
        known.common.add_cse(passes)
        if Optimize.SCHED_STORES in mode.optimizations:
            proton.add_schedule_buffer_store(passes)
        proton.add_allocate_proton_shared_memory(passes)


def kernel_of(files: Mapping[str, str]) -> Kernel:
    """What must be known of a kernel to read its records.

    Args:
        files: Paths of what its compilation left, by their names.

    Raises:
        ValueError: Triton kept none of them.
    """
    from triton._C.libtriton import amd, ir, nvidia, proton

    told = next((path for name, path in files.items() if name.endswith(".json")), None)
    text = next((path for name, path in files.items() if name.endswith(".ttgir")), None)
    if told is None or text is None:
        raise ValueError("Triton kept no intermediate code of the kernel")
    context = ir.context()
    facts = json.loads(Path(told).read_text(encoding="utf-8"))
    for package in (ir, amd if facts["target"]["backend"] == "hip" else nvidia, proton):
        package.load_dialects(context)
    module = ir.parse_mlir_module(text, context)
    module.context = context
    return Kernel(
        int(facts.get("profile_scratch_size", 0)),
        int(facts["num_warps"]),
        dict(proton.get_scope_id_names(module)),
        dict(proton.get_scope_id_parents(module)),
    )
