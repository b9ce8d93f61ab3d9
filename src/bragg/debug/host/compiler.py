"""A kernel as Triton's compiler takes and makes it, for a GPU that need not be there."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import redirect_stdout
from types import FunctionType, TracebackType
from typing import Any, TextIO

from bragg.debug.faults import KernelFault, Unsupported, as_tritons
from bragg.debug.flow.aggregates import rebuilt
from bragg.debug.flow.jitted import is_gluon, is_interpreted
from bragg.debug.flow.ways import TypesQuestion
from bragg.debug.host.launch import Launch
from bragg.debug.memory.blocks import Descriptor
from bragg.debug.targets import Target
from bragg.debug.values import Pointer, Tensor

_ALIGNMENT = 16
# What Triton 3.4 to 3.9 say where a name has two types at one place.
_TWO_TYPES = re.compile(
    "Mismatched type for |initial value for `|Ternary expression with dynamic condition|Inconsistent return types|"
    "Loop.carried variable |cannot reassign constexpr "
)


def gpu_dialect(launch: Launch, target: Target) -> str:
    """The launch's kernel in Triton's GPU dialect, specialised to its arguments as Triton does.

    Args:
        launch: The launch.
        target: The GPU.

    Raises:
        Exception: Whatever Triton's compiler raises.
    """
    source, options = _source(launch), _options(launch)
    key = f"{target.name} {launch.program.replaced} {options} {source.signature} {source.constants} {source.attrs}"
    known = _DIALECTS.setdefault(launch.program.function, {})
    if key not in known:
        known[key] = _gpu_dialect(source, options, _tritons(target))
    return known[key]


# For each function, its texts for types, constants and promises of arguments: Triton's cache keeps whole kernels alone.
_DIALECTS: weakref.WeakKeyDictionary[FunctionType, dict[str, str]] = weakref.WeakKeyDictionary()


def _gpu_dialect(source: Any, options: dict[str, Any], target: Any) -> str:
    """What later stages make of it takes a minute where a block has to be spilled, and is not looked at."""
    from triton.compiler.compiler import make_backend

    backend = make_backend(target)
    chosen = backend.parse_options({**options, **source.parse_options()})
    stages: dict[str, Any] = {}
    backend.add_stages(stages, chosen, source.language)
    module, metadata = _lower(source, options, target), {"target": target, **chosen.__dict__}
    for name in [name for name in ("ttir", "ttgir") if name in stages]:
        module = stages[name](module, metadata)
    return str(module)


def kernel_source(launch: Launch) -> Any:
    """What Triton's compiler is given for a launch, without its tensors.

    Raises:
        Unsupported: It is of Gluon, or Triton's own interpreter stands for it.
    """
    if is_gluon(launch.jitted) or is_interpreted(launch.jitted):
        raise Unsupported("only functions of @triton.jit are compiled")
    return _source(launch)


def tile_dialect(source: Any, options: dict[str, Any], target: Target) -> str:
    """A kernel as Triton's compiler first writes it, before any pass.

    Args:
        source: See `kernel_source`.
        options: Of the compiler.
        target: The GPU.

    Raises:
        Exception: Whatever Triton's compiler raises.
    """
    with redirect_stdout(_Silent(sys.stdout)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(_lower(source, options, _tritons(target)))


def _tritons(target: Target) -> Any:
    from triton.backends.compiler import GPUTarget

    return GPUTarget(target.backend, target.arch, target.warp_size)


def _options(launch: Launch) -> dict[str, Any]:
    return {name: launch.options[name] for name in ("num_warps", "num_stages") if name in launch.options}


def _source(launch: Launch) -> Any:
    """What Triton's compiler is given for a launch."""
    from triton.compiler import ASTSource
    from triton.runtime.jit import JITFunction

    signature, constants, attributes = {}, {}, {}
    unspecialized = {one.name for one in getattr(launch.jitted, "params", ()) if one.do_not_specialize}
    for number, (name, value) in enumerate(launch.values.items()):
        given = launch.arguments[name]
        looked_at = None if name in unspecialized and not isinstance(given, tuple) else given
        kind = "constexpr" if name in launch.constants else _kind(value, looked_at)
        signature[name] = kind
        for path, part, host, its_kind in _parts((number,), value, given, kind):
            if its_kind == "constexpr":
                constants[path] = host
            elif not isinstance(part, Descriptor) and _is_aligned(part):
                attributes[path] = [["tt.divisibility", _ALIGNMENT]]
    if is_gluon(launch.jitted):
        from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

        return GluonASTSource(GluonJITFunction(launch.program.function), signature, constants, attributes)
    own = isinstance(launch.jitted, JITFunction)
    return ASTSource(launch.jitted if own else JITFunction(launch.program.function), signature, constants, attributes)


def _kind(value: Any, given: Any) -> Any:
    """The type of an argument as Triton's compiler takes it; a tuple of them for a tuple.

    Args:
        value: What the kernel gets.
        given: What the host passed.
    """
    if isinstance(value, tuple):
        return rebuilt(value, list(map(_kind, value, given)))
    if isinstance(value, Descriptor):
        block = ",".join(map(str, value.block_shape))
        layout = "" if value.layout is None else f",{value.layout!r}"
        return f"tensordesc<{_short(value.dtype.name)}[{block}]{layout}>"
    if isinstance(value, Pointer):
        return f"*{_short(value.element.name)}"
    kind = _short(value.dtype.name) if isinstance(value, Tensor) else "constexpr"
    return "constexpr" if kind.startswith("i") and given == 1 else kind


def _parts(path: tuple[int, ...], value: Any, given: Any, kind: Any) -> Iterator[tuple[tuple[int, ...], Any, Any, Any]]:
    """An argument, or each part of a tuple: its place, what the kernel gets, what the host passed, its type."""
    if not isinstance(kind, tuple):
        yield path, value, given, kind
        return
    for number, part in enumerate(zip(value, given, kind, strict=True)):
        yield from _parts((*path, number), *part)


def _short(name: str) -> str:
    return re.sub(r"^(u?)int", lambda found: "u" if found[1] else "i", name)


def _is_aligned(value: Any) -> bool:
    if isinstance(value, Pointer):
        return value.buffer.address % _ALIGNMENT == 0
    return bool(value.dtype.is_int() and value.dtype.bits > 1 and value.known_bounds()[0] % _ALIGNMENT == 0)


# For each function, whether Triton takes it for types and constants of arguments.
_ANSWERS: weakref.WeakKeyDictionary[FunctionType, dict[str, KernelFault | bool]] = weakref.WeakKeyDictionary()


def types_question(launch: Launch, target: Target) -> TypesQuestion:
    """Asks Triton whether names of a launch's kernel have one type on all ways.

    That is not known of Gluon's kernels: some that Triton refuses end the process.
    """
    return TypesQuestion(lambda: _have_one_type(launch, target))


def _have_one_type(launch: Launch, target: Target) -> bool:
    if is_gluon(launch.jitted) or is_interpreted(launch.jitted):
        return False
    source = _source(launch)
    key = f"{target.name} {launch.program.replaced} {source.signature} {source.constants}"
    known = _ANSWERS.setdefault(launch.program.function, {})
    if key not in known:
        known[key] = _answer(launch, source, target)
    answer = known[key]
    if isinstance(answer, KernelFault):
        raise as_tritons(answer)
    return answer


def _answer(launch: Launch, source: Any, target: Target) -> KernelFault | bool:
    try:
        with redirect_stdout(_Silent(sys.stdout)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _lower(source, _options(launch), _tritons(target))
    except Exception as error:  # noqa: BLE001 - the compiler is Triton's, and its errors have no common class
        return _refusal(launch, error) or False
    return True


def _lower(source: Any, options: dict[str, Any], target: Any) -> Any:
    """What Triton's compiler does first: each statement with its types, as a module of MLIR."""
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    backend, context = make_backend(target), ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    chosen = backend.parse_options({**options, **source.parse_options()})
    given = {
        "target": target,
        "options": chosen,
        "codegen_fns": backend.get_codegen_implementation(chosen),
        "module_map": backend.get_module_map(),
        "context": context,
    }
    wanted = inspect.signature(source.make_ir).parameters
    module = source.make_ir(**{name: value for name, value in given.items() if name in wanted})
    module.context = context  # A module does not keep it alive.
    return module


def _refusal(launch: Launch, error: BaseException) -> KernelFault | None:
    """Two types of a name as a fault; None: the error is about something else."""
    while error.__cause__ is not None:
        error = error.__cause__
    said = str(getattr(error, "error_message", None) or error)
    if not _TWO_TYPES.search(said):
        return None
    fault = KernelFault(_readable(said), hint="Give the name one type and shape on all ways")
    if place := _place(error.__traceback__):
        fault.place(launch.kernel, *place)
    return fault


def _readable(said: str) -> str:
    """The compiler's sentence, without the exception and the constants around it."""
    inner = re.fullmatch(r"\w+\((.*)\)", said, re.DOTALL)
    sentence = ast.literal_eval(inner[1]) if inner else said
    return re.sub(r"constexpr\[(\d+)\]", r"\1", str(sentence))


def _place(trace: TracebackType | None) -> tuple[str, int] | None:
    """File and line of the statement that the compiler was at."""
    place = None
    while trace is not None:
        at: Any = trace.tb_frame.f_locals.get("self")
        if hasattr(at, "begin_line") and hasattr(at.cur_node, "lineno"):
            place = at.file_name, at.begin_line + at.cur_node.lineno
        trace = trace.tb_next
    return place


class _Silent:
    """A stream that this thread writes to in vain: kernels print while they are compiled."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        """Write what other threads do."""
        return len(text) if threading.get_ident() == self._thread else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
