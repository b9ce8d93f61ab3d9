"""Triton: launches of its kernels are called what the kernels were specialized for."""

from __future__ import annotations

import gc
import sys
import warnings
from functools import cache

from bragg.code.kernel_files import SIZES, attributes_of, sizes_of
from bragg.core import core
from bragg.record.inside.notes import guarded, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.triton.specialization import Path, Specialization


# Triton sets it right after it has loaded a kernel, and no launch reads it.
_SET_WHEN_LOADED = "n_max_threads"

# From there up to Triton's launcher, with wrappers between.
_MOST_CALLS = 12

# Hash of the kernel that a name was given to.
_owners: dict[str, str] = {}
_followers: list[Callable[[Any, str], object]] = []


def name_kernels(triton: ModuleType) -> Callable[[], None] | None:
    """Name each kernel when it is loaded, and at once those that are.

    Triton's own hook for this (`knobs.runtime.kernel_load_end_hook`) is not used: it is not in Triton 3.4, and says
    neither the constants of a kernel nor the types of its arguments.

    Returns:
        What undoes it; None when this Triton loads its kernels otherwise.
    """
    kernel_class = triton.compiler.CompiledKernel
    if _SET_WHEN_LOADED not in kernel_class._init_handles.__code__.co_names:
        note(f"Triton {triton.__version__} loads kernels in an unknown way: their names have no specialization")
        return None
    setattr(kernel_class, _SET_WHEN_LOADED, _Loaded())
    is_new = getattr(triton.__spec__, "_initializing", False)
    for kernel in () if is_new else _loaded_kernels(kernel_class):
        _kernel_was_loaded(kernel)
    return lambda: delattr(kernel_class, _SET_WHEN_LOADED)


def follow_loading(follower: Callable[[Any, str], object]) -> Callable[[], None]:
    """Call a function with each kernel that was named, and its name, before it is launched.

    Returns:
        What undoes it.
    """
    _followers.append(follower)
    return lambda: _followers.remove(follower)


def give_name(kernel: Any, specialization: Specialization, attributes: Sequence[tuple[str, str]] = ()) -> str:
    """Let launches of a loaded kernel be called what it was specialized for.

    Args:
        kernel: An object with the `function` of the driver, its `name` and a `hash` of all that it was compiled from.
        specialization: What it was specialized for.
        attributes: Keys and values that describe it.

    Returns:
        The name.
    """
    from bragg.record.hooks.triton.specialization import specialized_name

    name = _own_name(specialized_name(kernel.name, specialization), kernel.hash)
    core.name_kernel(kernel.function, name, kernel.name, (*attributes, *attributes_of(kernel)))
    return name


def specialization_of(kernel: Any) -> Specialization:
    """The specialization of a `CompiledKernel`."""
    from bragg.record.hooks.triton.specialization import Specialization

    source, metadata = kernel.src, kernel.metadata
    function = getattr(source, "fn", None)  # None: compiled from a file of intermediate code
    cluster = tuple(getattr(metadata, "cluster_dims", ()))
    return Specialization(
        parameters=list(map(str, function.arg_names if function else source.signature)),
        declared=function.constexprs if function else (),
        types=types_by_path(source.signature),
        constants=getattr(source, "constants", {}),
        facts=getattr(source, "attrs", {}),
        warps=metadata.num_warps,
        stages=metadata.num_stages,
        cluster=cluster if any(size != 1 for size in cluster) else (metadata.num_ctas, 1, 1),
        options=_unusual_options(metadata),
    )


def types_by_path(signature: Mapping[Any, Any]) -> dict[Path, str]:
    """Types of the arguments that are not constant."""
    return {path: text for path, text in _leaves(list(signature.values())) if text != "constexpr"}


class _Loaded:
    """Stands for the attribute of kernels that is set when they are loaded."""

    def __get__(self, kernel: Any, owner: type | None = None) -> Any:
        if kernel is None:
            return self
        if _SET_WHEN_LOADED not in vars(kernel):
            raise AttributeError(_SET_WHEN_LOADED)
        return vars(kernel)[_SET_WHEN_LOADED]

    def __set__(self, kernel: Any, value: Any) -> None:
        vars(kernel)[_SET_WHEN_LOADED] = value
        _kernel_was_loaded(kernel)


def _loaded_kernels(kernel_class: type) -> list[Any]:
    # No isinstance: it would run the code of proxies.
    kernels: list[Any] = [thing for thing in gc.get_objects() if type(thing) is kernel_class]
    return sorted((kernel for kernel in kernels if kernel.function is not None), key=lambda kernel: str(kernel.hash))


@guarded
def _kernel_was_loaded(kernel: Any) -> None:
    function = getattr(kernel.src, "fn", None)
    if not isinstance(kernel.function, int):
        return
    sizes = _sizes_of_launch()
    attributes = [(SIZES, sizes)] if sizes else []
    if function is not None and kernel.name != function.__name__:  # chosen by the program: @triton.jit(repr=...)
        name = kernel.name
        core.name_kernel(kernel.function, name, name, (*attributes, *attributes_of(kernel)))
    else:
        name = give_name(kernel, specialization_of(kernel), attributes)
    for follower in _followers:
        follower(kernel, name)


def _sizes_of_launch() -> str:
    """Whole numbers that the launch which loads a kernel passes to it: `n=781 stride=1024`; empty: no launch does."""
    frame = sys._getframe()
    for _ in range(_MOST_CALLS):
        if frame.f_back is None:
            break
        frame = frame.f_back
        if frame.f_code.co_name == "run" and isinstance(given := frame.f_locals.get("bound_args"), dict):
            return sizes_of(given)
    return ""


def _own_name(name: str, identity: str) -> str:
    """The name, unless another kernel has it: then with as much of the hash as makes it unique."""
    candidates = [name, *(f"{name[:-1]} #{identity[:length]}>" for length in range(4, len(identity) + 1))]
    return next(candidate for candidate in candidates if _owners.setdefault(candidate, identity) == identity)


def _leaves(types: Sequence[Any], outer: Path = ()) -> Iterator[tuple[Path, str]]:
    """Types with where they are; tuples are arguments too."""
    for index, item in enumerate(types):
        if isinstance(item, (tuple, list)):
            yield from _leaves(item, (*outer, index))
        else:
            yield (*outer, index), str(item)


def _unusual_options(metadata: Any) -> dict[str, Any]:
    """Options that are not the default, without those that every name shows and where libraries lie."""
    shown = ("num_warps", "num_stages", "num_ctas", "cluster_dims", "extern_libs")
    return {
        name: value
        for name, default in _default_options(metadata.target).items()
        if name not in shown and _comparable(value := getattr(metadata, name, default)) != _comparable(default)
    }


@cache
def _default_options(target: Any) -> dict[str, Any]:
    from triton.compiler import make_backend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Triton warns of options that a program has not set: this is not a program.
        options: dict[str, Any] = vars(make_backend(target).parse_options({}))
    return options


def _comparable(value: Any) -> Any:
    """A value as it is after it was written to a file and read again."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_comparable(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return value
