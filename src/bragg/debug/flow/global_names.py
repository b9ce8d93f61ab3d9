"""Global names in kernels: Triton refuses variables that are not tl.constexpr, and functions of plain Python."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import Any

from bragg.code.python_nodes import walk
from bragg.debug.flow.jitted import is_jitted

# For each of a function's free names, the message and the hint of why Triton refuses it; None: it does not.
Reasons = tuple[tuple[str, str] | None, ...]

# Python's functions that Triton knows: `builtin_namespace` of its code generator, the same from 3.4 to 3.9.
_KNOWN = {"float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min", "print", "range"}
# For debugging alone; nobody expects them on a GPU.
_STOPS = {"bragg", "breakpoint", "debugpy", "ipdb", "IPython", "pdb"}
# Modules whose functions Triton calls with constants, and those.
_FREE = {"copy", "math", "triton", *_STOPS}


def mark_refused(function: ast.FunctionDef, names: Mapping[str, Any], local: Collection[str]) -> None:
    """Let the engine tell where the body of a function uses what Triton refuses.

    Args:
        function: Its body is changed in place: `NAME` becomes `_bragg.refused(NAME, message, hint)`.
        names: Global names, and those of enclosing functions.
        local: Names that hide them.
    """
    marker = _Marker({name: value for name, value in names.items() if name not in local}, local)
    function.body = [marker.visit(statement) for statement in function.body]


def free_names(nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """One node for each name, and each dotted name, that a function uses and does not assign; `nodes` is all of it."""
    local = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    local |= _parameters_of(nodes[0])
    found = {}
    for node in nodes:
        dotted = _dotted(node)
        if dotted and dotted[0] not in local and isinstance(node, ast.expr):
            found[dotted] = node
    return list(found.values())


def _parameters_of(function: ast.AST) -> set[str]:
    assert isinstance(function, ast.FunctionDef)
    return {node.arg for node in walk(function.args) if isinstance(node, ast.arg)}


def _dotted(node: ast.AST) -> tuple[str, ...]:
    """The parts of a dotted name; empty for any other node."""
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return (*owner, node.attr) if owner else ()
    return (node.id,) if isinstance(node, ast.Name) else ()


def reasons_to_refuse(nodes: list[ast.expr], names: Mapping[str, Any]) -> Reasons:
    """Why Triton refuses each of a function's free names: on this alone depends what `mark_refused` makes of it."""
    marker = _Marker(names, ())
    return tuple(
        marker.reason_of_attribute(node)[1] if isinstance(node, ast.Attribute) else marker.reason_of_name(node.id)
        for node in nodes
        if isinstance(node, ast.Attribute | ast.Name)
    )


class _Marker(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, Any], local: Collection[str]) -> None:
        self._names, self._local = names, local

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        """Annotations are not part of the kernel."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        is_other = not isinstance(node.ctx, ast.Load) or node.id in self._local
        return node if is_other else _marked(node, self.reason_of_name(node.id))

    def reason_of_name(self, name: str) -> tuple[str, str] | None:
        if name in _KNOWN | _STOPS:
            return None
        if name in self._names:
            return _variable(name, self._names[name])
        return _of_python(name) if hasattr(builtins, name) else None

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        is_in_module, reason = self.reason_of_attribute(node)
        if not is_in_module:
            node.value = self.visit(node.value)
        return _marked(node, reason)

    def reason_of_attribute(self, node: ast.Attribute) -> tuple[bool, tuple[str, str] | None]:
        """Whether it is a module's, and why it is refused as such."""
        module = self._module(node.value)
        if module is None:
            return False, None
        if module.__name__.partition(".")[0] in _FREE:
            return True, None
        value = getattr(module, node.attr, None)
        is_function = callable(value) and not isinstance(value, type) and not _is_tritons(value)
        return True, _function(ast.unparse(node)) if is_function else None

    def _module(self, node: ast.expr) -> ModuleType | None:
        """The module that an expression names."""
        if isinstance(node, ast.Name):
            found = self._names.get(node.id)
        elif isinstance(node, ast.Attribute) and (outer := self._module(node.value)):
            found = getattr(outer, node.attr, None)
        else:
            return None
        return found if isinstance(found, ModuleType) else None


def _variable(name: str, value: Any) -> tuple[str, str] | None:
    if isinstance(value, ModuleType) or _is_tritons(value) or (isinstance(value, type) and hasattr(value, "_fields")):
        return None
    if callable(value) and not isinstance(value, type):
        return _function(name)
    return (
        f"Triton does not compile the global variable {name}: it is not a tl.constexpr",
        f"Write {name} = tl.constexpr(…) where it is defined, or make it a parameter",
    )


def _function(name: str) -> tuple[str, str]:
    hint = "Decorate it with @triton.jit, or use the function of triton.language"
    return f"Triton does not call {name}, a function without @triton.jit", hint


def _of_python(name: str) -> tuple[str, str]:
    return f"Triton does not know Python's {name}", "Use what triton.language has instead, or compute it on the host"


def _is_tritons(value: Any) -> bool:
    """Triton takes it as it is: a constant, a type, one of its functions, or a function with one of its decorators."""
    if is_jitted(value) or any(kind.__name__ == "JITCallable" for kind in type(value).__mro__):
        return True
    if getattr(value, "__triton_builtin__", False) or getattr(value, "__triton_aggregate__", False):
        return True
    return str(getattr(value, "__module__", "")).startswith(("triton.language", "triton.experimental.gluon.language"))


def _marked(node: ast.expr, reason: tuple[str, str] | None) -> ast.expr:
    if reason is None:
        return node
    call = ast.parse("_bragg.refused(None, '', '')", mode="eval").body
    assert isinstance(call, ast.Call)
    call.args = [node, *map(ast.Constant, reason)]
    for child in (call, call.func, *call.args[1:]):
        ast.copy_location(child, node)
    return ast.fix_missing_locations(call)
