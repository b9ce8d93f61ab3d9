"""Short names for people: what a kernel computes, without how it was instantiated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from bragg.model.kernels.names import is_specialized
from bragg.views.text.demangle import demangle

# Deeper template arguments only repeat what outer ones say.
_MAX_NESTING = 8
_OPEN, _CLOSE = "<({[", ">)}]"
_BRACKET = re.compile(f"[{re.escape(_OPEN + _CLOSE)}]")
_ANONYMOUS = "(anonymous namespace)"
_CONSTANT = re.compile(r"^(\(.*\))?-?\d+[ul]*$|^(true|false|void|nullptr)\b")
_DECORATION = re.compile(r"^(vectorized|unrolled)_|_?kernel(_impl|_cuda)?(_nocast)?$", re.IGNORECASE)
_FUNCTOR_DECORATION = re.compile(
    r"^CUDAFunctor(OnSelf|OnOther)?_|_?(Math)?Functor$|(_?cuda)?_?kernel(_?impl|_?cuda)*$", re.IGNORECASE
)
# What programs put into names of their own, such as `matmul_<grid:8x1x1>_<warps:4>`, and no function of C++ has.
_NOT_CPP = re.compile(r"(?<!:):(?!:)|(?<!-)>\w")
# Brackets that are part of a function's name, and operators whose names look like brackets.
_KEPT_BRACKETS = {_ANONYMOUS: "\0", "operator()": "\1"}
_OTHER_OPERATOR = re.compile(r"\boperator(?!\(\)|\w)")
# Matrix products of cuBLAS: what differs between them is the type of the operands, their layout and the tile.
_XMMA = re.compile(
    r"^(?P<kind>sm\d+_xmma_\w+?)_(?P<type>[a-z]+\d+)(?:_?[a-z]+\d+)*_(?P<layout>[nt]{2})_\w*?tilesize(?P<tile>[\dx]+)_"
)
# Types that hold the interesting one as an argument.
_WRAPPER = re.compile(
    r"^(Kernel2?|device_kernel|enable_sm\w+|GemmUniversal|ReduceOp|func_wrapper_t|(Unary|Binary|AUnary|BUnary)Functor|"
    r"gpu_(index_)?kernel\w*|opmath_\w+)$"
)
# Types that say how data is reached, not what is computed.
_PLUMBING = re.compile(
    r"^(array|Array|\w*OffsetCalculator|Load\w+|Store\w+|\w*Metadata|\w*Args?|\w*Params|cublas\w+|TensorInfo|"
    r"integral_constant)$"
)
_SCALARS = {
    "c10::BFloat16": "bf16",
    "__nv_bfloat16": "bf16",
    "c10::Half": "f16",
    "__half": "f16",
    "c10::Float8_e4m3fn": "f8e4m3",
    "c10::Float8_e5m2": "f8e5m2",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    **{
        name: name
        for name in (
            *("float", "double", "bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int"),
            *("unsigned int", "long", "unsigned long", "long long", "unsigned long long"),
        )
    },
}


@cache
def short_symbol(symbol: str) -> str:
    """A symbol as compilers write it, demangled and shortened."""
    return shorten(demangle(symbol))


def shorten(name: str) -> str:
    """A C++ kernel name reduced to what it does; specializations and names without C++ syntax come back unchanged.

    `at::native::vectorized_elementwise_kernel<4, FillFunctor<int>>` is `elementwise[Fill<int>]`.
    """
    if product := _XMMA.match(name):
        return "_".join(product.group("kind", "type", "layout", "tile"))
    if not any(mark in name for mark in ("::", "<", "(")) or is_specialized(name) or _NOT_CPP.search(name):
        return name
    function = _without_signature(name)
    if _split(function, "::")[-1].startswith("operator"):
        return name
    return _describe(function, _DECORATION, 0) or name


@cache
def short_function(symbol: str) -> str:
    """A function of the host, demangled and qualified, without arguments and parameters.

    `void at::native::fill<float>(at::Tensor const&)` is `at::native::fill`.
    """
    word = _declarator(demangle(symbol))
    if _OTHER_OPERATOR.search(word):
        return word
    for text, mark in _KEPT_BRACKETS.items():
        word = word.replace(text, mark)
    letters, depth = [], 0
    for letter in word:
        depth += letter in "<("
        if depth == 0:
            letters.append(letter)
        depth -= letter in ">)"
    name = "".join(letters)
    for text, mark in _KEPT_BRACKETS.items():
        name = name.replace(mark, text)
    return name or symbol


def _describe(type_name: str, decoration: re.Pattern[str], nesting: int) -> str:
    """Short form of a type or function with its template arguments; empty when nothing can be said."""
    if nesting > _MAX_NESTING:
        return ""
    components = _split(type_name, "::")
    function = _enclosing_function(components)
    identifier, arguments = _template(function)
    inner = next(filter(None, (_telling(argument, nesting + 1) for argument in arguments)), "")
    if inner and _WRAPPER.match(identifier):
        return inner
    scalars = ", ".join(dict.fromkeys(filter(None, map(_scalar, [*arguments, *_lambda_parameters(components)]))))
    name = decoration.sub("", identifier) or identifier
    return f"{name}[{inner}]" if inner and nesting == 0 else f"{name}<{scalars}>" if scalars else name


def _telling(argument: str, nesting: int) -> str:
    """Short form of a template argument that says what is computed; empty for constants, scalars and plumbing."""
    if _CONSTANT.match(argument) or _scalar(argument):
        return ""
    identifier, _ = _template(_enclosing_function(_split(argument, "::")))
    return "" if _PLUMBING.match(identifier) else _describe(argument, _FUNCTOR_DECORATION, nesting)


def _enclosing_function(components: list[str]) -> str:
    """The last component, or for a lambda the function that it is written in."""
    named = [part for part in components if not part.startswith(("{", "operator", _ANONYMOUS))]
    if not components[-1].startswith(("{", "operator")):
        return components[-1]
    return next((part for part in named if "(" in part), named[-1] if named else components[-1])


def _lambda_parameters(components: list[str]) -> list[str]:
    last = components[-1]
    return _split(last[8 : last.rfind(")")], ", ") if last.startswith("{lambda(") else []


def _template(component: str) -> tuple[str, list[str]]:
    """Identifier and template arguments of one component of a qualified name."""
    identifier = re.split(r"[<(]", component, maxsplit=1)[0]
    rest = component[len(identifier) :]
    if not rest.startswith("<"):
        return identifier, []
    return identifier, [argument.strip() for argument in _split(rest[1 : _closing(rest)], ",")]


def _scalar(type_name: str) -> str:
    return _SCALARS.get(type_name.removesuffix(" const").rstrip("&* "), "")


def _declarator(name: str) -> str:
    """The qualified name with its parameters: no return type, no qualifiers."""
    words = _split(name, " ")
    return next((word for word in words if "(" in word.replace(_ANONYMOUS, "")), words[-1])


def _without_signature(name: str) -> str:
    """The qualified name alone: no return type, no parameters, no qualifiers."""
    parts = _split(_declarator(name), "::")
    last = parts[-1]
    parameters = next((at for at, depth, bracket in _depths(last) if bracket == "(" and depth == 1), len(last))
    return "::".join([*parts[:-1], last[:parameters] or last])


def _split(text: str, separator: str) -> list[str]:
    """The parts between separators that stand outside all brackets."""
    parts: list[str] = []
    depth = 0
    for part in text.split(separator):
        if depth:
            parts[-1] += separator + part
        else:
            parts.append(part)
        for bracket in _BRACKET.findall(part):
            depth = _depth_after(bracket, depth)
    return parts


def _closing(text: str) -> int:
    """Where the bracket that opens the text is closed; its end when it is not."""
    return next((at for at, depth, bracket in _depths(text) if bracket in _CLOSE and depth == 0), len(text))


def _depths(text: str) -> Iterator[tuple[int, int, str]]:
    """Position, open brackets after it, and text of each bracket."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth = _depth_after(found[0], depth)
        yield found.start(), depth, found[0]


def _depth_after(bracket: str, depth: int) -> int:
    return depth + 1 if bracket in _OPEN else max(0, depth - 1)
