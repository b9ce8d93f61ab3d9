"""Kernels that PyTorch generates: what they were specialized for, and which operators of the program they compute."""

from __future__ import annotations

import gc
import re
import sys
from functools import cache

from bragg.record.hooks.triton.kernel_names import give_name, types_by_path
from bragg.record.inside.notes import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType, ModuleType
    from typing import Any

    from bragg.record.hooks.triton.specialization import Specialization


MODULE = "torch._inductor.runtime.triton_heuristics"

# A kernel that PyTorch launches itself, and one that Triton launches.
_RESULT_CLASSES = ("StaticTritonCompileResult", "TritonCompileResult")
_DEFINITION = re.compile(r"(?P<comment>(?:^#.*\n)+)(?P<kernel>\w+) = async_compile\.triton\(", re.MULTILINE)
_ORIGIN = re.compile(r"Source Nodes: \[(?P<nodes>.*?)\], Original ATen: \[(?P<operators>.*?)\]")
# Options that PyTorch gives to the compiler for single kernels, and their defaults.
_OPTIONS = {"enable_fp_fusion": True, "launch_pdl": False, "launch_cooperative_grid": False, "disable_ftz": False}

_followers: list[Callable[[Any, Any, str], object]] = []


def name_kernels(heuristics: ModuleType) -> Callable[[], None]:
    """Name each kernel when it gets its launcher, and at once those that have one.

    Returns:
        What undoes it.
    """
    classes = [vars(heuristics)[name] for name in _RESULT_CLASSES if name in vars(heuristics)]
    originals = [kind.make_launcher for kind in classes]
    for kind in classes:
        kind.make_launcher = _naming(kind.make_launcher)
    is_new = getattr(heuristics.__spec__, "_initializing", False)
    for result in [] if is_new else gc.get_objects():
        if type(result) in classes:
            _name(result)

    def undo() -> None:
        for kind, original in zip(classes, originals, strict=True):
            kind.make_launcher = original

    return undo


def follow_launchers(follower: Callable[[Any, Any, str], object]) -> Callable[[], None]:
    """Call a function with each kernel that was named, its launcher and its name, before it is launched.

    Returns:
        What undoes it.
    """
    _followers.append(follower)
    return lambda: _followers.remove(follower)


@cache
def origins_in(file: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Attributes of kernels in the comments of a generated program: by kernel, pairs of an attribute and its text."""
    with open(file, encoding="utf-8", errors="replace") as source:  # noqa: PTH123  # `pathlib` costs 10 ms to import.
        text = source.read()
    found = {match["kernel"]: _ORIGIN.search(match["comment"]) for match in _DEFINITION.finditer(text)}
    return {
        kernel: (("source nodes", origin["nodes"]), ("ATen operators", origin["operators"]))
        for kernel, origin in found.items()
        if origin
    }


def _naming(make_launcher: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def make_launcher_of_named(result: Any) -> Any:
        launcher = make_launcher(result)
        name = _name(result)
        for follower in _followers if name else ():
            guarded(follower)(result, launcher, name)
        return launcher

    return make_launcher_of_named


@guarded
def _name(result: Any) -> str:
    """The name that a kernel got; empty: it has no handle yet."""
    kernel = result.kernel
    if not isinstance(kernel.function, int):
        return ""
    kernel_name = result.inductor_meta.get("kernel_name", kernel.name)
    return give_name(kernel, _specialization_of(kernel, result.compile_meta), _origin_of(kernel_name))


def _specialization_of(kernel: Any, meta: Mapping[str, Any]) -> Specialization:
    from bragg.record.hooks.triton.specialization import Specialization

    function = getattr(getattr(kernel, "src", None), "fn", None)
    parameters = list(function.arg_names if function else kernel.arg_names)
    ordered = {name: meta["signature"].get(name, "constexpr") for name in parameters}
    types = types_by_path(ordered)
    # What is not known to be a multiple of 16 is left out.
    known = meta["configs"][0] if meta.get("configs") else {}
    return Specialization(
        parameters=parameters,
        declared=function.constexprs if function else kernel.declared_constexprs,
        types=types,
        constants={(parameters.index(name),): value for name, value in meta["constants"].items() if name in parameters},
        facts={path: known.get(path, []) for path in types},
        warps=meta["num_warps"],
        stages=meta["num_stages"],
        options={name: meta[name] for name, default in _OPTIONS.items() if meta.get(name, default) != default},
    )


def _origin_of(kernel: str) -> tuple[tuple[str, str], ...]:
    """From the generated program that defines the kernel: it is running, or was run."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        origins = _origins_of(frame.f_globals)
        if kernel in origins:
            return origins[kernel]
        frame = frame.f_back
    found = [_origins_of(vars(module)) for module in list(sys.modules.values()) if kernel in vars(module)]
    found = [origins for origins in found if kernel in origins]
    return found[0][kernel] if len(found) == 1 else ()  # Nothing where it could be one of several.


def _origins_of(program: Mapping[str, Any]) -> dict[str, tuple[tuple[str, str], ...]]:
    """The origins that a generated program tells, by its globals."""
    is_generated = "AsyncCompile" in program and program.get("__file__")
    return origins_in(program["__file__"]) if is_generated else {}
