"""Kernel names that say what a kernel was specialized for: `matmul<BM=128 BN=256 BK=64 w8 s3 bf16>`.

A name depends on nothing but its specialization, so it is the same in every run, and two specializations differ in it:

| token | meaning |
|---|---|
| `BM=128` | a constexpr parameter; names become their initials where that is unique within the kernel |
| `w8 s3 c2x1x1` | warps, stages of the software pipeline, cluster (not shown when there is none) |
| `bf16`, `f16*2 f32` | element types of pointers in order; equal neighbours once, counted unless they are the last |
| `sak=scn=1`, `bias=None` | arguments that became constants because of their value |
| `n:i64` | scalars that are neither i32 nor f32 |
| `!16:x,n` | pointers and integers that are not multiples of 16, though the kernel is specialized for that |
| `maxnreg=64` | other options that are not the compiler's default |
| `#1f3a` | what is too long to say |
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

Path = tuple[int, ...]
"""Where an argument is: its index, and its place within tuples."""

# A profile shows several of them side by side.
_MAX_LENGTH = 120
_MAX_VALUE_LENGTH = 24
_WORD = re.compile(r"[A-Z]+\d*(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+")
_PLAIN_VALUE = re.compile(r"[\w.+*/()\[\],:'-]+")
_DESCRIPTOR = re.compile(r"tensordesc\w*<(?P<element>\w+)\[(?P<shape>[\d, ]*)\](?P<rest>.*)>")
_USUAL_SCALARS = ("i32", "fp32")
_ALIGNED = ["tt.divisibility", 16]


class Specialization(NamedTuple):
    """The arguments and options that a kernel was compiled for, in Triton's terms.

    Attributes:
        parameters: Names in order.
        declared: Indices of the parameters that the source declares constexpr.
        types: Type of each argument that is not constant: `*bf16`, `i32`, `tensordesc<f16[64, 64]>`.
        constants: Value of each argument that is.
        facts: What is known of an argument's values, as pairs; no entry: not looked at.
        warps: Of one block.
        stages: Of the software pipeline.
        cluster: Blocks of a cluster along each axis.
        options: Those that are not the default, by name.
    """

    parameters: list[str]
    declared: Collection[int]
    types: Mapping[Path, str]
    constants: Mapping[Path, Any]
    facts: Mapping[Path, list[Any]]
    warps: int
    stages: int
    cluster: tuple[int, ...] = (1, 1, 1)
    options: Mapping[str, Any] = {}


def specialized_name(symbol: str, kernel: Specialization) -> str:
    """The name of a kernel with its specialization."""
    text = " ".join(_tokens(kernel))
    if len(text) > _MAX_LENGTH:
        text = f"{text[:_MAX_LENGTH].rpartition(' ')[0]} #{_digest(text)}"
    return f"{symbol}<{text}>"


def short_names(names: list[str]) -> dict[str, str]:
    """Each name, shortened to the initials of its words where no other name may be meant.

    `BLOCK_M` is `BM`. Where initials are ambiguous the last word stays whole: `stride_ak` is `sak` beside `stride_am`.
    """
    candidates = {name: list(dict.fromkeys([name, *_abbreviations(name)])) for name in names}
    meant = list(itertools.chain.from_iterable(candidates.values()))
    return {
        name: next((short for short in options[1:] if meant.count(short) == 1), name)
        for name, options in candidates.items()
    }


def element_type(type_name: str) -> str:
    """Type of what a pointer or descriptor points to, as short as people write it; empty for scalars."""
    if descriptor := _DESCRIPTOR.fullmatch(type_name):
        shape = descriptor["shape"].replace(", ", "x").replace(",", "x")
        rest = f"#{_digest(descriptor['rest'])}" if descriptor["rest"] else ""
        return f"{_short_type(descriptor['element'])}[{shape}]{rest}"
    if not type_name.startswith("*"):
        return ""
    return _short_type(type_name.lstrip("*").removeprefix("k"))


def _tokens(kernel: Specialization) -> Iterator[str]:
    short = short_names(kernel.parameters)

    def name(path: Path) -> str:
        return ".".join([short[kernel.parameters[path[0]]], *map(str, path[1:])])

    for path, value in sorted(kernel.constants.items()):
        if path[0] in kernel.declared:
            yield f"{name(path)}={_value(value)}"
    yield f"w{kernel.warps}"
    yield f"s{kernel.stages}"
    if any(size != 1 for size in kernel.cluster):
        yield f"c{'x'.join(map(str, kernel.cluster))}"
    yield from _elements(list(filter(None, (element_type(text) for _, text in sorted(kernel.types.items())))))
    found = {path: _value(value) for path, value in sorted(kernel.constants.items()) if path[0] not in kernel.declared}
    for text in dict.fromkeys(found.values()):
        yield f"{'='.join(name(path) for path in found if found[path] == text)}={text}"
    for path, text in sorted(kernel.types.items()):
        if not element_type(text) and text not in _USUAL_SCALARS:
            yield f"{name(path)}:{_short_type(text)}"
    if unaligned := ",".join(name(path) for path in sorted(kernel.facts) if _is_unaligned(kernel, path)):
        yield f"!16:{unaligned}"
    for path, facts in sorted(kernel.facts.items()):
        if unusual := [fact for fact in facts if fact != _ALIGNED and path in kernel.types]:
            yield f"{name(path)}:{_value(str(unusual))}"
    for option, value in sorted(kernel.options.items()):
        yield f"{option}={_value(value)}"


def _elements(types: list[str]) -> Iterator[str]:
    """Element types of pointers. How many the last one has follows from the kernel."""
    runs = [(text, len(list(run))) for text, run in itertools.groupby(types)]
    for index, (text, count) in enumerate(runs):
        yield f"{text}*{count}" if count > 1 and index < len(runs) - 1 else text


def _is_unaligned(kernel: Specialization, path: Path) -> bool:
    text = kernel.types.get(path, "")
    return text.startswith(("*", "i", "u")) and text not in ("i1", "u1") and _ALIGNED not in kernel.facts[path]


def _abbreviations(name: str) -> list[str]:
    """Initials of all words, and of all but the last; none for a single word."""
    words = _WORD.findall(name)
    if len(words) < 2:
        return []
    initials = [word[0] + word.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") for word in words]
    return ["".join(initials), "".join([*initials[:-1], words[-1]])]


def _value(value: Any) -> str:
    """A constant in as few letters as tell it from others of its kind."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if isinstance(value, (bool, int, float, type(None))):
        return repr(value)
    if isinstance(value, tuple):
        return f"({','.join(map(_value, value))})"
    text = value if isinstance(value, str) else getattr(value, "__name__", None) or str(value)
    if text == "":
        return "''"
    if len(text) > _MAX_VALUE_LENGTH or not _PLAIN_VALUE.fullmatch(text):
        return f"#{_digest(text)}"
    is_number = isinstance(value, str) and not text.isidentifier()
    return repr(text) if is_number or text in ("None", "True", "False") else _short_type(text)


def _short_type(text: str) -> str:
    """`fp16` as `f16`; anything else unchanged."""
    return re.sub(r"^fp(?=\d)", "f", text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:4]
