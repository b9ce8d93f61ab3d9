"""Lists every public name of Triton's language and whether `bragg.debug` executes it, as a table in Markdown.

python tools/debug_language.py > docs/reference/debug-language.md
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from types import ModuleType
from typing import Any

from bragg.debug.faults import Unsupported
from bragg.debug.foreign import Namespace, NestedFunction, translated

MODULES = (
    "triton.language",
    "triton.language.math",
    "triton.language.standard",
    "triton.language.extra.libdevice",
    "triton.language.extra.cuda",
)

_GLUON = "triton.experimental.gluon.language"
GLUON_MODULES = (
    _GLUON,
    f"{_GLUON}.nvidia.ampere",
    f"{_GLUON}.nvidia.ampere.async_copy",
    f"{_GLUON}.nvidia.hopper",
    f"{_GLUON}.nvidia.hopper.mbarrier",
    f"{_GLUON}.nvidia.hopper.tma",
    f"{_GLUON}.nvidia.blackwell",
    f"{_GLUON}.nvidia.blackwell.clc",
    f"{_GLUON}.nvidia.blackwell.float2",
    f"{_GLUON}.nvidia.blackwell.tma",
)

_LAYOUTS = "layouts have no effect here, and are not computed"
# Names that the engine refuses, and why.
LISTED = {
    "bank_conflicts": _LAYOUTS,
    "to_linear_layout": _LAYOUTS,
    "try_cancel": "programs are not started by others",
    "load_result": "programs are not started by others",
    "inline_asm": "assembly that a function writes; use inline_asm_elementwise",
    "async_load_im2col": "descriptors of images are not executed",
    "async_copy_global_to_shared_im2col": "descriptors of images are not executed",
}
# What modules import for themselves.
_NOT_OF_THE_LANGUAGE = {"List", "T", "wraps", "annotations", "constexpr_function", "jit"}


def public_names(module: ModuleType) -> list[str]:
    """Names of a module that kernels may use."""
    names = set(getattr(module, "__all__", None) or dir(module))
    names |= {name for name, value in vars(module).items() if getattr(value, "__triton_builtin__", False)}
    return sorted(
        name
        for name in names
        if not name.startswith("_")
        and hasattr(module, name)
        and not isinstance(getattr(module, name), ModuleType)
        and (name not in _NOT_OF_THE_LANGUAGE or module.__name__ == "triton.language")
    )


def missing(module: ModuleType, name: str) -> str:
    """What the engine lacks for a name; empty: nothing."""
    try:
        found = getattr(Namespace(module), name)
    except Unsupported as error:
        return error.reason
    return next(_unmet(found, set()), "") if isinstance(found, NestedFunction) else ""


def _unmet(function: NestedFunction, seen: set[str]) -> Any:
    """What a function of Triton that is written in the language lacks, itself or in what it calls."""
    if function.fn.__qualname__ in seen:
        return
    seen.add(function.fn.__qualname__)
    for value in _used(function.fn):
        try:
            found = value()
        except Unsupported as error:
            yield f"it needs what is refused: {error.reason}"
            continue
        if isinstance(found, NestedFunction):
            yield from _unmet(found, seen)


def _used(function: Any) -> Any:
    """The engine's meaning of each name in a function's body."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    for node in (child for statement in tree.body for child in ast.walk(statement)):
        if isinstance(node, ast.Name) and node.id in function.__globals__:
            yield lambda node=node: translated(function.__globals__[node.id], node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = function.__globals__.get(node.value.id)
            if isinstance(owner, ModuleType):
                yield lambda owner=owner, node=node: getattr(Namespace(owner), node.attr)


def inventory() -> dict[str, dict[str, str]]:
    """For each module its public names and what the engine lacks for them."""
    modules = [_module(name) for name in (*MODULES, *GLUON_MODULES)]
    return {
        module.__name__: {name: missing(module, name) for name in public_names(module)} for module in modules if module
    }


def _module(name: str) -> ModuleType | None:
    """A module; None: the installed Triton does not have it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def table() -> str:
    """The inventory of the installed Triton."""
    import triton

    lines = [
        "# What of Triton's language the debugger executes",
        "",
        f"Triton {triton.__version__}; made by `tools/debug_language.py`, and checked by a test.",
        "",
        "| module | executed | not executed |",
        "|---|---|---|",
    ]
    for module, names in inventory().items():
        executed = [f"`{name}`" for name, lack in names.items() if not lack]
        refused = [f"`{name}`: {LISTED.get(name, lack)}" for name, lack in names.items() if lack]
        lines.append(f"| `{module}` | {len(executed)}: {', '.join(executed)} | {'; '.join(refused) or 'none'} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
