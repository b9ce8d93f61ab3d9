"""Loops over single elements of NumPy arrays, by the program's text.

What is stored in one element of an array is one number: NumPy refuses to store more. So the turn that computes it by
operators and functions of single elements computes one number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bragg.analyze.causes.text.program_text import FileText, Function, Loop, call_name, names_read

# They give as many elements as they are given; `max` of one argument does not.
_OF_ELEMENTS = {
    *("abs", "fabs", "absolute", "int", "float", "round", "sign", "sqrt", "square", "exp", "exp2", "expm1", "log"),
    *("log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan2", "atan2", "hypot", "erf"),
    *("pow", "power", "maximum", "minimum", "floor", "ceil", "mod", "fmod", "where", "clip"),
}
_OF_SEVERAL = {"min", "max"}
_WORKS_ON_MANY = (
    *(ast.Slice, ast.MatMult, ast.In, ast.NotIn, ast.Starred, ast.Await, ast.Yield, ast.With),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_BY_SHAPE = {"zeros", "ones", "empty", "full"}
_BY_NUMBERS = {"rand", "randn"}
_OF_SAME_SHAPE = {"zeros_like", "ones_like", "empty_like", "full_like", "copy", "array", "asarray", "astype"}


def computes_elements(file: FileText, loop: Loop) -> bool:
    """Whether each turn computes with elements of arrays, and neither slices, multiplies matrices nor calls others."""
    parts = [part for each in loop.body for part in ast.walk(each)]
    return any(isinstance(part, ast.Subscript) for part in parts) and all(_is_of_elements(file, part) for part in parts)


def stores_one_element(file: FileText, loop: Loop) -> bool:
    """Whether what each turn computes is, or is added up to, one element of an array whose dimensions are known."""
    function = file.function_of(loop)
    targets = [target for each in _stores(loop) for target in _targets(each)]
    return bool(targets) and all(
        _is_one_element(file, target, function)
        if isinstance(target, ast.Subscript)
        else isinstance(target, ast.Name) and _is_stored(file, target.id, function)
        for target in targets
    )


def _stores(part: ast.AST) -> list[ast.Assign | ast.AugAssign]:
    return [each for each in ast.walk(part) if isinstance(each, (ast.Assign, ast.AugAssign))]


def _targets(store: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    return [store.target] if isinstance(store, ast.AugAssign) else store.targets


def _is_stored(file: FileText, name: str, function: Function) -> bool:
    """Whether a variable becomes one element of an array."""
    return any(
        isinstance(target, ast.Subscript)
        and name in names_read(each.value)
        and all(_is_of_elements(file, part) for part in ast.walk(each.value))
        and _is_one_element(file, target, function)
        for each in _stores(function)
        for target in _targets(each)
    )


def _is_of_elements(file: FileText, part: ast.AST) -> bool:
    if isinstance(part, ast.Call):
        name = call_name(part)
        is_known = name in _OF_ELEMENTS or (name in _OF_SEVERAL and len(part.args) > 1)
        return is_known and name not in file.functions
    return not isinstance(part, _WORKS_ON_MANY)


def _is_one_element(file: FileText, target: ast.Subscript, function: Function) -> bool:
    """Whether a subscript names as many numbers as its array has dimensions."""
    indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    numbers = _numbers(function)
    are_numbers = all(
        isinstance(part, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Load))
        or (isinstance(part, ast.Name) and part.id in numbers)
        for index in indices
        for part in ast.walk(index)
    )
    return are_numbers and _dimensions(file, target.value, set()) == {len(indices)}


def _numbers(function: Function) -> set[str]:
    """Variables that are numbers: what `range` gives and takes."""
    loops = [each for each in ast.walk(function) if isinstance(each, ast.For) and call_name(each.iter) == "range"]
    return {name for each in loops for name in _names(each.target)} | {
        name for each in loops if isinstance(each.iter, ast.Call) for part in each.iter.args for name in _names(part)
    }


def _names(part: ast.expr) -> Iterator[str]:
    if isinstance(part, ast.Name):
        yield part.id


def _dimensions(file: FileText, array: ast.expr, seen: set[ast.AST]) -> set[int | None]:
    """How many dimensions an array may have; None among them: not known. Of one in terms of itself: none."""
    if array in seen:
        return set()
    seen.add(array)
    if isinstance(array, ast.Name):
        function = file.function_of(array)
        unpacked = _unpacked_shapes(array.id, function)
        values = file.assigned(array.id, function) or file.arguments(array.id, function)
        return unpacked or set().union(*(_dimensions(file, each, seen) for each in values or [ast.Constant(None)]))
    if not isinstance(array, ast.Call):
        return {None}
    name, shape = call_name(array), array.args[0] if array.args else None
    if name in _BY_NUMBERS:
        return {len(array.args)}
    if name in _BY_SHAPE and shape is not None:
        return {_length(file, shape)}
    if name in _OF_SAME_SHAPE:
        is_method = isinstance(array.func, ast.Attribute) and (name == "astype" or not array.args)
        of = array.func.value if is_method and isinstance(array.func, ast.Attribute) else shape
        return {None} if of is None else _dimensions(file, of, seen)
    returned = [
        each.value
        for function in file.functions.get(name, [])
        for each in ast.walk(function)
        if isinstance(each, ast.Return) and each.value is not None
    ]
    return set().union(*(_dimensions(file, each, seen) for each in returned)) if returned else {None}


def _length(file: FileText, shape: ast.expr) -> int | None:
    """Of a shape as it is written; a number is a shape of one dimension."""
    if isinstance(shape, ast.Tuple):
        return len(shape.elts)
    is_number = isinstance(shape, (ast.Constant, ast.BinOp)) or call_name(shape) == "len"
    is_number |= isinstance(shape, ast.Name) and shape.id in _numbers(file.function_of(shape))
    return 1 if is_number else None


def _unpacked_shapes(name: str, function: Function) -> set[int | None]:
    """How many numbers `n, m = a.shape` takes."""
    return {
        len(target.elts)
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Attribute) and each.value.attr == "shape"
        if isinstance(each.value.value, ast.Name) and each.value.value.id == name
        for target in each.targets
        if isinstance(target, ast.Tuple)
    }
