"""Where a kernel's accesses and ways depend on what it loads: a launch without such a place is the same for all data.

A name depends on data when anything that is assigned to it anywhere in the function does: the order of statements is
not looked at, so nothing is missed. Functions of the author are followed with the arguments that depend on data. What
cannot be followed counts as dependent. Branches that the constants of a launch rule out are not looked at.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bragg.code.python_nodes import children, given, name_of, stored_names, walk
from bragg.debug.flow.jitted import is_jitted, is_of, python_function
from bragg.debug.flow.nodes import PLAIN, Fixed, fixed_names, live_nodes, value_of
from bragg.debug.flow.program import Program
from bragg.debug.numbers.dtypes import DType

# Attributes and functions that tell of types and shapes alone.
_TYPES = {"dtype", "type", "element_ty", "scalar"}
_SHAPES = {*_TYPES, "shape", "numel", "primitive_bitwidth", "block_shape"}
_SHAPE_FUNCTIONS = {"zeros_like", "full_like", "len", "isinstance"}
# Functions that give what memory holds. The arguments with these names, and positions, say where they access it.
_WHERE = {
    "load": ("pointer", "mask", "boundary_check"),
    "store": ("pointer", "mask", "boundary_check"),
    "load_tensor_descriptor": ("desc", "offsets"),
    "store_tensor_descriptor": ("desc", "offsets"),
    "gather": ("x_offsets", "y_offset", "index"),
    "scatter": ("x_offsets", "y_offset"),
    "atomic_cas": ("pointer",),
    "atomic_load": ("pointer", "mask"),
    "atomic_store": ("pointer", "mask"),
    "atomic_poll": ("pointer",),
    **{f"atomic_{name}": ("pointer", "mask") for name in ("add", "and", "max", "min", "or", "xchg", "xor")},
}
_READS = {"load", "load_tensor_descriptor", *(name for name in _WHERE if name.startswith("atomic_"))}
_PLACES = {
    "load": (0, 1),
    "store": (0, 2),
    "atomic_cas": (0,),
    "atomic_poll": (0,),
    "atomic_load": (0, 1),
    "gather": (1,),
}
_DECIDING = {"device_assert", "range", "static_range", "assume", "map_elementwise"}
_NEVER_FOLLOWED = {"async_task"}
# Assembly that accesses memory, goes ways of its own, or reads what neither arguments nor data decide.
_NOT_ARITHMETIC = re.compile(
    r"\b(ld|ldu|st|atom|red|cp|tex|prefetch\w*|mbarrier|multimem|bra|brx|call|exit|trap)\b"
    r"|%(clock|globaltimer|smid|nsmid|warpid|laneid|gridid|envreg|pm\d)"
)


@dataclass(frozen=True)
class Dependence:
    """A place whose effect depends on data.

    Attributes:
        what: What is wrong with it, as `the condition depends on data`.
        file: Of the line.
        line: The line.
    """

    what: str
    file: str
    line: int


def dependence_of(program: Program, constants: Fixed | None = None) -> Dependence | None:
    """The first place of a kernel that depends on data; None: there is none.

    Args:
        program: The kernel.
        constants: Parameters that a launch compiles into it, and their values; None: no launch is meant.
    """
    if not program.is_rewritten:
        return Dependence("the function has no source", program.function.__code__.co_filename, 0)
    values = _deciding(program, constants or {})
    if values not in program.dependence:
        known, key = program.text.found, (dependence_of, _meanings(program), values)
        if key[1] is None or key not in known:
            found = _Function(program, frozenset(), {}, dict(values)).places()
            known[key] = min(found, key=lambda place: place.line) if found else None
        program.dependence[values] = known[key]
    first: Dependence | None = program.dependence[values]
    return first


def _deciding(program: Program, constants: Fixed) -> tuple[tuple[str, Any], ...]:
    """Those that may decide conditions."""
    names = program.text.deciding_names
    return tuple((name, value) for name, value in constants.items() if name in names and isinstance(value, PLAIN))


def _meanings(program: Program) -> tuple[tuple[str, str], ...] | None:
    """What a text's free names are, which decides what its calls are; None: some may be the author's functions."""
    names, found = program.names(), []
    for node, text in program.text.free_texts:
        value = names.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(value, ModuleType) and f"{value.__name__}.".startswith("triton."):
            found.append((text, value.__name__))
        elif not (value is None or isinstance(value, int | float | str) or (is_jitted(value) and _is_tritons(value))):
            return None
    return tuple(found)


Known = dict[tuple[Any, ...], tuple[bool, list[Dependence]]]


class _Function:
    """One function with the parameters that depend on data.

    Args:
        program: The function.
        tainted: Its parameters that depend on data.
        known: What is known of the functions that it calls.
        arguments: Its parameters whose values are known.
    """

    def __init__(self, program: Program, tainted: frozenset[str], known: Known, arguments: Fixed) -> None:
        self._program, self._known = program, known
        self._tree = program.text.tree
        self._tainted = set(tainted)
        self._names = program.names()
        self._fixed = fixed_names(program.text.nodes, arguments)
        self._nodes = live_nodes(self._tree, self._fixed)
        self._local = set(stored_names(self._nodes))
        self._local |= {one.arg for one in self._nodes if isinstance(one, ast.arg)}

    def places(self) -> list[Dependence]:
        """Of the function and of those that it calls."""
        return self._result()[1]

    def _result(self) -> tuple[bool, list[Dependence]]:
        before, assignments = -1, list(_assignments(self._nodes))
        while before != len(self._tainted):
            before = len(self._tainted)
            for names, value in assignments:
                if self._depends(value):
                    self._tainted.update(names)
        returned = (node.value for node in self._nodes if isinstance(node, ast.Return) and node.value)
        return any(map(self._depends, returned)), list(self._places())

    def _places(self) -> Iterator[Dependence]:
        for node in self._nodes:
            if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert) and self._decides(node.test):
                yield self._at(node, "the condition depends on data")
            elif isinstance(node, ast.Call):
                yield from self._places_of_call(node)

    def _decides(self, test: ast.expr) -> bool:
        """A condition depends on data."""
        return self._depends(test) and value_of(test, self._fixed) is None

    def _places_of_call(self, call: ast.Call) -> Iterator[Dependence]:
        name = name_of(call)
        target = self._target(call.func)
        if is_jitted(target) and not _is_tritons(target):
            yield from self._called(target, call)[1]
            return
        if name in _NEVER_FOLLOWED or (name == "inline_asm_elementwise" and not _is_arithmetic(call)):
            yield self._at(call, f"{name} is not followed")
        elif name in _WHERE and any(map(self._depends, self._where(call, name))):
            yield self._at(call, "the address or mask depends on data")
        elif name in _DECIDING and any(map(self._depends, given(call))):
            yield self._at(call, "the loop depends on data" if "range" in name else "the condition depends on data")
        elif isinstance(call.func, ast.Attribute) and not self._is_known_method(call.func, target):
            yield self._at(call, f"the call of {name} is not followed")
        for function in map(self._target, given(call)):  # What combines elements of reductions and scans.
            if is_jitted(function) and not _is_tritons(function):
                yield from self._analysed(function, None, {})[1]

    def _is_known_method(self, function: ast.Attribute, target: Any) -> bool:
        from bragg.debug.language import FUNCTIONS

        return (
            target is not None
            or (isinstance(function.value, ast.Attribute) and function.value.attr in _TYPES)
            or function.attr in {*FUNCTIONS, *_WHERE, "to", "logical_and", "logical_or"}
            or bool(hasattr(_language(), function.attr))
            or (function.attr.startswith("is_") and hasattr(DType, function.attr))
        )

    def _where(self, call: ast.Call, name: str) -> Iterator[ast.expr]:
        """What says where an access goes."""
        named = {word.arg: word.value for word in call.keywords}
        is_method = isinstance(call.func, ast.Attribute) and self._module(call.func.value) is None
        if is_method and isinstance(call.func, ast.Attribute):
            yield call.func.value
            yield from call.args[:1] if _takes_offsets(call, name) else call.args
            yield from (value for word, value in named.items() if word != "value")
            return
        for place in _PLACES.get(name, (0, 2)):
            yield from call.args[place : place + 1]
        if any(isinstance(one, ast.Starred) for one in call.args):
            yield from call.args
        yield from (value for word, value in named.items() if word is None or word in _WHERE[name])

    def _depends(self, node: ast.expr) -> bool:
        """The value of an expression depends on data."""
        if isinstance(node, ast.Name):
            return node.id in self._tainted
        if isinstance(node, ast.Attribute):
            return node.attr not in _SHAPES and self._depends(node.value)
        if isinstance(node, ast.Call):
            return self._result_depends(node)
        if isinstance(node, ast.IfExp) and (known := value_of(node.test, self._fixed)) is not None:
            return self._depends(node.body if known[0] else node.orelse)
        return any(self._depends(child) for child in _expressions(node))

    def _result_depends(self, call: ast.Call) -> bool:
        name, target = name_of(call), self._target(call.func)
        if is_jitted(target) and not _is_tritons(target):
            return self._called(target, call)[0]
        if name in _READS:
            return True
        if name in _SHAPE_FUNCTIONS:
            return any(map(self._depends, given(call)[1:]))
        receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        return any(map(self._depends, [*receiver, *given(call)]))

    def _called(self, target: Any, call: ast.Call) -> tuple[bool, list[Dependence]]:
        function = python_function(target)
        names = [*function.__code__.co_varnames[: function.__code__.co_argcount]]
        given = dict(zip(names, call.args, strict=False))
        tainted = {name for name, value in given.items() if self._depends(value)}
        tainted |= {word.arg for word in call.keywords if word.arg and self._depends(word.value)}
        named = {word.arg: word.value for word in call.keywords if word.arg}
        values = {name: value_of(value, self._fixed) for name, value in {**given, **named}.items()}
        fixed = {name: value[0] for name, value in values.items() if value is not None}
        is_spread = any(isinstance(one, ast.Starred) for one in call.args) or any(not one.arg for one in call.keywords)
        has_more = len(call.args) > len(names)
        if is_spread or has_more:
            return self._analysed(target, None, {})
        return self._analysed(target, frozenset(tainted), fixed)

    def _analysed(self, target: Any, tainted: frozenset[str] | None, fixed: Fixed) -> tuple[bool, list[Dependence]]:
        """A function that is called; `tainted` None: all of its parameters depend on data; `fixed`: known ones."""
        program = Program.of(python_function(target), target)
        if not program.is_rewritten:
            return True, [Dependence("the function has no source", program.function.__code__.co_filename, 0)]
        if tainted is None:
            code = program.function.__code__
            tainted = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 1])
        values = _deciding(program, fixed)
        key = (program.function, tainted, values)
        if key not in self._known:
            self._known[key] = (True, [])  # While it calls itself.
            self._known[key] = _Function(program, tainted, self._known, dict(values))._result()
        return self._known[key]

    def _target(self, node: ast.expr) -> Any:
        """The object that a name or a dotted name means outside of the function; None: it is a value of the kernel."""
        if isinstance(node, ast.Name):
            return None if node.id in self._local else self._names.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._target(node.value)
            return None if owner is None else getattr(owner, node.attr, None)
        return None

    def _module(self, node: ast.expr) -> ModuleType | None:
        found = self._target(node)
        return found if isinstance(found, ModuleType) else None

    def _at(self, node: ast.expr | ast.stmt, what: str) -> Dependence:
        return Dependence(what, self._program.function.__code__.co_filename, node.lineno)


def _language() -> Any:
    import triton.language

    return triton.language


def _takes_offsets(call: ast.Call, name: str) -> bool:
    """A method of a descriptor gets the value after the offsets."""
    has_list = any(isinstance(one, ast.List | ast.Tuple) for one in call.args[:1])
    return name == "store" or (name.startswith("atomic_") and has_list)


def _is_tritons(target: Any) -> bool:
    return is_of(python_function(target), "triton")


def _is_arithmetic(call: ast.Call) -> bool:
    """Inline assembly, written out in the call, that computes its result of its arguments alone."""
    named = {word.arg: word.value for word in call.keywords}
    text = call.args[0] if call.args else named.get("asm")
    return isinstance(text, ast.Constant) and not _NOT_ARITHMETIC.search(str(text.value))


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    for child in children(node):
        if isinstance(child, ast.expr):
            yield child
        elif not isinstance(child, ast.stmt):
            yield from _expressions(child)


def _assignments(nodes: Iterable[ast.AST]) -> Iterator[tuple[set[str], ast.expr]]:
    """Names that are assigned, and what to."""
    for node in nodes:
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.For | ast.comprehension):
            targets, value = [node.target], node.iter
        if value is not None:
            yield {one.id for target in targets for one in walk(target) if isinstance(one, ast.Name)}, value
