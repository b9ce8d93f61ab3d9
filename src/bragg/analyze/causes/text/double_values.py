"""Values of 64 bits by the text of a program: NumPy's numbers, and what PyTorch computes with them.

What is not known to be of 64 bits is taken not to be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection
from functools import cached_property

from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.code.python_nodes import parts_of, walk

_MOST_STEPS = 60  # from a value to what it comes from
_IS_DOUBLE = re.compile(r"(?:(?:np|numpy|torch)\.)?(?:float64|double)|float|'float64'|np\.float_")
_IS_NARROW = re.compile(
    r"(?:np|numpy)\.(?:float32|float16|single|u?int\d*|bool_?|complex\d+)$|^(?:int|bool|complex)$|^'\w+'$"
)
_SAME_TYPE = {"T", "mT", "H", "mH", "data"}
_IS_PLACE = re.compile(r"'(?:cpu|cuda|mps)[:\d]*'|(?:\w+\.)*device\w*|True|False")
_NUMPY_MAKES = {
    *("zeros", "ones", "empty", "linspace", "logspace", "geomspace", "eye", "identity", "hanning", "hamming"),
    *("blackman", "loadtxt", "genfromtxt", "fftfreq"),
}
# With how many arguments they draw arrays, not single numbers.
_NUMPY_DRAWS = {
    **dict.fromkeys(("rand", "randn", "random", "random_sample", "standard_normal"), 1),
    "exponential": 2,
    "normal": 3,
    "uniform": 3,
}
_GENERATORS = {"default_rng", "RandomState"}
_NUMPY_LISTS = {"array", "asarray"}
_TYPE_AT = {"zeros": 1, "ones": 1, "empty": 1, "full": 2, "array": 1, "asarray": 1}
_NUMPY_KEEPS = {
    *("triu", "tril", "stack", "concatenate", "vstack", "hstack", "sin", "cos", "exp", "log", "sqrt", "abs", "tile"),
    *("repeat", "transpose", "reshape", "outer", "where", "clip", "maximum", "minimum", "roll", "flip", "pad", "power"),
    *("array", "asarray", "ascontiguousarray", "copy", "square", "tanh", "cumsum", "cumprod", "expand_dims"),
}
_TAKES_NUMPY = {"from_numpy", "as_tensor", "tensor", "asarray"}
_TORCH_MAKES = {"randn", "rand", "zeros", "ones", "empty", "linspace", "eye", "normal", "Tensor"}
_LAYERS = re.compile(r"Linear|Conv\dd|Embedding|LayerNorm|RMSNorm|BatchNorm\dd|Parameter|LSTM|GRU")
_TO_FEWER_BITS = {"float", "half", "bfloat16", "long", "int", "bool"}
_CHANGES_TYPE = {"to", "type", "type_as", "new_tensor"}
_OF_OTHER_TYPE = {
    *("argmax", "argmin", "argsort", "numpy", "item", "tolist", "size", "dim", "numel", "any", "all", "eq", "ne"),
    *("gt", "lt", "ge", "le", "isnan", "isinf", "isfinite", "new_zeros", "backward", "append", "get"),
}


class DoubleValues:
    """Which values of one file are tensors of PyTorch in 64 bits.

    Args:
        file: Its text.
    """

    def __init__(self, file: FileText) -> None:
        self._file = file
        self._tensors: dict[ast.AST, bool] = {}
        self._arrays: dict[ast.AST, bool] = {}
        self._depth = 0

    @cached_property
    def is_meant(self) -> bool:
        """Whether the program asks for 64 bits everywhere, or of a whole model: then nothing is an accident."""
        for each in walk(self._file.tree):
            if not isinstance(each, ast.Call):
                continue
            if call_name(each) in ("set_default_dtype", "set_default_tensor_type"):
                return True
            is_statement = isinstance(self._file.parents.get(each), ast.Expr)
            widens = call_name(each) == "double" or (call_name(each) == "to" and _asks_for_double(each))
            if widens and isinstance(each.func, ast.Attribute) and (is_statement or self._is_model(each.func.value)):
                return True
        return False

    def _is_model(self, value: ast.expr) -> bool:
        return any(isinstance(each, ast.Call) and call_name(each)[:1].isupper() for each in self._file.makers(value))

    def meets_fewer_bits(self, value: ast.expr) -> bool:
        """Whether an operator in an expression takes one tensor of 64 bits and one of 32."""
        return any(self._meets(part) for part in walk(value))

    def _meets(self, part: ast.AST) -> bool:
        if isinstance(part, ast.BinOp):
            operands: list[ast.expr] = [part.left, part.right]
        elif isinstance(part, ast.Call) and _is_torch(part.func):
            operands = [value for each in part.args for value in _elements(each)]
        else:
            return False
        wide = [each for each in operands if self.is_double(each)]
        return bool(wide) and any(self._is_single(each) for each in operands if each not in wide)

    def _is_single(self, value: ast.expr) -> bool:
        """Whether it is known to come from a tensor or a layer of PyTorch of the usual 32 bits."""
        return any(isinstance(each, ast.Call) and _makes_single(each) for each in self._file.origins(value))

    def is_double(self, value: ast.AST) -> bool:
        """Whether an expression is a tensor of 64 bits with dimensions: numbers do not make others wider."""
        return self._known(self._tensors, value, self._is_tensor)

    def makers(self, value: ast.expr) -> list[ast.Call]:
        """Calls that make the tensors of 64 bits out of NumPy's arrays which an expression is computed with."""
        calls = [each for each in self._file.origins(value) if isinstance(each, ast.Call)]
        return [each for each in calls if self._takes_numpy(each) and not self._is_converted(each)]

    def _is_converted(self, call: ast.Call) -> bool:
        above = self._file.parents.get(call)
        return isinstance(above, ast.Attribute) and above.attr in _TO_FEWER_BITS

    def _known(self, found: dict[ast.AST, bool], value: ast.AST, judge: Callable[[ast.AST], bool]) -> bool:
        """What is found once; that a value is computed from itself tells nothing of it."""
        if value not in found and self._depth < _MOST_STEPS:
            found[value] = False
            self._depth += 1
            found[value] = judge(value)
            self._depth -= 1
        return found.get(value, False)

    def _is_tensor(self, value: ast.AST) -> bool:
        if isinstance(value, ast.Call):
            return self._is_tensor_of_call(value)
        if isinstance(value, ast.BinOp):
            return any(map(self.is_double, (value.left, value.right)))
        if isinstance(value, ast.UnaryOp):
            return not isinstance(value.op, ast.Not) and self.is_double(value.operand)
        if isinstance(value, ast.Subscript):
            return _is_sliced(value) and self.is_double(_whole(value))
        if isinstance(value, ast.Attribute) and value.attr in _SAME_TYPE:
            return self.is_double(value.value)
        return self._all_behind(value, self.is_double)

    def _is_tensor_of_call(self, call: ast.Call) -> bool:
        name = call_name(call)
        if name in self._file.functions:
            return self._all_behind(call, self.is_double)
        if (asked := _type_of(call)) is not None:
            return asked
        if _is_torch(call.func):
            given = [value for each in call.args for value in _elements(each)]
            return self._takes_numpy(call) or (name not in _OF_OTHER_TYPE and any(map(self.is_double, given)))
        if not isinstance(call.func, ast.Attribute) or name in _TO_FEWER_BITS | _OF_OTHER_TYPE:
            return False
        if name in _CHANGES_TYPE and not _is_place(call):
            return False
        return name == "double" or self.is_double(_whole(call.func.value))

    def _takes_numpy(self, call: ast.Call) -> bool:
        is_taken = _is_torch(call.func) and call_name(call) in _TAKES_NUMPY and bool(call.args)
        return is_taken and _type_of(call) is None and self._is_array(call.args[0])

    def _is_array(self, value: ast.AST) -> bool:
        return self._known(self._arrays, value, self._is_wide_array)

    def _is_wide_array(self, value: ast.AST) -> bool:
        """Whether an expression is an array of NumPy in 64-bit floating point."""
        if isinstance(value, ast.Call):
            return self._is_array_of_call(value)
        if isinstance(value, ast.BinOp):
            return any(map(self._is_array, (value.left, value.right)))
        if isinstance(value, ast.UnaryOp):
            return not isinstance(value.op, ast.Not) and self._is_array(value.operand)
        if isinstance(value, ast.Subscript):
            return _is_sliced(value) and self._is_array(_whole(value))
        return self._all_behind(value, self._is_array)

    def _is_array_of_call(self, call: ast.Call) -> bool:
        name, root = call_name(call), _root(call.func)
        if name in self._file.functions:
            return self._all_behind(call, self._is_array)
        if (asked := _type_of(call)) is not None:
            return asked
        if root in ("np", "numpy") or (name in _NUMPY_DRAWS and self._is_of_generator(call.func)):
            return self._is_array_of_numpy(call, name)
        is_method = isinstance(call.func, ast.Attribute) and name in _NUMPY_KEEPS
        return is_method and isinstance(call.func, ast.Attribute) and self._is_array(call.func.value)

    def _is_of_generator(self, method: ast.expr) -> bool:
        makers = [method.value, *self._file.makers(method.value)] if isinstance(method, ast.Attribute) else []
        return any(isinstance(each, ast.Call) and call_name(each) in _GENERATORS for each in makers)

    def _is_array_of_numpy(self, call: ast.Call, name: str) -> bool:
        given = [value for each in call.args for value in _elements(each)]
        if any(_IS_NARROW.search(ast.unparse(each)) for each in given):
            return False
        if name in _NUMPY_DRAWS:
            return len(call.args) >= _NUMPY_DRAWS[name] or any(each.arg == "size" for each in call.keywords)
        if name in _NUMPY_LISTS and call.args and isinstance(call.args[0], (ast.List, ast.Tuple)):
            return any(_is_fraction(each) or self._is_array(each) for each in given)
        if name in ("arange", "full"):
            return any(map(_is_fraction, given))
        return name in _NUMPY_MAKES or (name in _NUMPY_KEEPS and any(map(self._is_array, given)))

    def _all_behind(self, value: ast.AST, judge: Callable[[ast.AST], bool]) -> bool:
        behind = self._reaching(value)
        return bool(behind) and all(judge(each) for each in behind)

    def _reaching(self, value: ast.AST) -> list[ast.expr]:
        """What a value may be set to: of a variable the last value in the statements that have run before it."""
        if isinstance(value, ast.Name):
            last = self._last_set(value)
            return [last] if last else self._file.behind(value)
        return self._file.behind(value)

    def _last_set(self, name: ast.Name) -> ast.expr | None:
        part: ast.AST = name
        while part in self._file.parents and not isinstance(part, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            above = self._file.parents[part]
            for block in (getattr(above, field, None) for field in ("body", "orelse", "finalbody")):
                if isinstance(block, list) and part in block:
                    for earlier in reversed(block[: block.index(part)]):
                        if name.id in _sets(earlier):
                            return _value_of(earlier, name.id)
            if isinstance(above, (ast.For, ast.While)) and name.id in _sets(above):
                return None  # an earlier turn may have set it
            part = above
        return None


def _is_sliced(value: ast.Subscript) -> bool:
    """Whether dimensions are left for sure."""
    parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
    return any(isinstance(each, ast.Slice) or _is_none_or_rest(each) for each in parts)


def _is_none_or_rest(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and (part.value is None or part.value is ...)


def _sets(statement: ast.AST) -> Collection[str]:
    names = (each for each in parts_of(statement, ast.Name) if isinstance(each.ctx, ast.Store))
    return {each.id for each in names}


def _value_of(statement: ast.AST, name: str) -> ast.expr | None:
    """What an assignment to one variable sets it to; None: it is another statement."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return statement.value if isinstance(target, ast.Name) and target.id == name else None
    return None


def _elements(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]


def _whole(value: ast.expr) -> ast.expr:
    """What rows are taken of: where dimensions are added to them, they had some."""
    while isinstance(value, ast.Subscript):
        value = value.value
    return value


def _is_fraction(value: ast.expr) -> bool:
    """Whether a number is written that is no whole one."""
    is_written = any(isinstance(each, ast.Constant) and isinstance(each.value, float) for each in walk(value))
    return is_written or ast.unparse(value).lstrip("-") in ("np.inf", "np.nan", "np.pi", "math.pi", "numpy.inf")


def _root(value: ast.expr) -> str:
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""


def _is_torch(function: ast.expr) -> bool:
    return _root(function) in ("torch", "F")


def _makes_single(call: ast.Call) -> bool:
    is_made = _is_torch(call.func) and call_name(call) in _TORCH_MAKES and _type_of(call) is None
    return is_made or _LAYERS.fullmatch(call_name(call)) is not None


def _type_of(call: ast.Call) -> bool | None:
    """Whether a call asks for 64 bits; None: for no type."""
    asked = [each.value for each in call.keywords if each.arg == "dtype"]
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if not asked and name == "astype":
        asked = call.args[:1]
    if not asked and name in _TYPE_AT and _root(call.func) in ("np", "numpy"):
        asked = call.args[_TYPE_AT[name] :][:1]
    if not asked and name in _CHANGES_TYPE and _asks_for_double(call):
        return True
    return _IS_DOUBLE.fullmatch(ast.unparse(asked[0])) is not None if asked else None


def _asks_for_double(call: ast.Call) -> bool:
    given = [*call.args, *(each.value for each in call.keywords if each.arg == "dtype")]
    return any(_IS_DOUBLE.fullmatch(ast.unparse(each)) for each in given)


def _is_place(call: ast.Call) -> bool:
    """Whether `to` names a device alone."""
    texts = [ast.unparse(each) for each in (*call.args, *(each.value for each in call.keywords))]
    return bool(texts) and all(map(_IS_PLACE.fullmatch, texts))
