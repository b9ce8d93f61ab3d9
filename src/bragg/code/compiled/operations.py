"""The operations of a module of MLIR, a line each, as Triton 3.4 to 3.9 prints them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from bragg.code.mlir_text import split_location
from bragg.code.source_place import CallChain, user_place
from bragg.model import Place
from bragg.model.kernels.compiled import Argument

_OPERATION = re.compile(r'\s*(?:(?P<results>%[^=]*?) = )?"?(?P<name>[a-z_]\w*\.[\w.]+)"?')
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_ARGUMENT = re.compile(
    r"%(?P<name>[\w$.-]+): (?P<type>!?[\w.]+(?:<[^()]*?>+)?) ?(?P<attributes>\{[^{}]*\})?(?= loc|,|\))"
)
_DIVISIBILITY = re.compile(r"tt\.divisibility = (\d+)")
_ALIAS = re.compile(r"(?P<name>#\w+) = #\w+\.(?P<kind>\w+)<\{(?P<inside>.*)\}>")
_LIST = re.compile(r"(\w+) = \[([\d, ]*)\]")
_MODULE = re.compile(r'"?([\w.-]+)"? = (?:(\d+) : i32|"([^"]*)")')
_ITER_ARG = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)")
_TILE = re.compile(r"tensor<((?:\d+x)+)(!tt\.ptr<)?(\w+)[^,<>]*>*(?:, (#\w+(?:\.\w+)?))?")
# Functions of libdevice, which only compute.
_PURE_EXTERN, PURE_EXTERN = re.compile(r"tt\.extern_elementwise .*\bpure = true\b"), "math.extern"
_GATHERS = re.compile(r"arith\.(?:add|mul|max|min|and|or|xor)\w*$")
LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True)
class Layout:
    """How the elements of a tile are dealt out to threads.

    Attributes:
        kind: `blocked`, `nvidia_mma`.
        lists: Its lists by name: `sizePerThread`, `warpsPerCTA`, `order`.
    """

    kind: str
    lists: dict[str, tuple[int, ...]]

    @property
    def per_thread(self) -> int | None:
        """Neighbours that one thread holds along the fastest dimension; None: the layout does not say."""
        sizes, order = self.lists.get("sizePerThread"), self.lists.get("order")
        return sizes[order[0]] if sizes and order else None


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: `tt.load`.
        results: The values that it defines.
        operands: The values that it uses, in order.
        text: Its line without its location; of one with regions, its last line behind it.
        chain: Where it comes from.
        loop: Row of the innermost loop around it in `Module.operations`; -1: in none.
        depth: Loops around it.
        block: Values that loops begin with, by the values that they have inside.
        row: Its line of the text, from 0.
        branches: Branches around it, within its innermost loop.
    """

    name: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    text: str
    chain: CallChain
    loop: int
    depth: int
    block: dict[str, str] = field(default_factory=dict)
    row: int = 0
    branches: int = 0


@dataclass(frozen=True)
class Module:
    """A module.

    Attributes:
        operations: In the order of the text.
        arguments: Of its kernel.
        layouts: By alias: `#blocked1`.
        attributes: Of the module: `ttg.num-warps`.
    """

    operations: Sequence[Operation]
    arguments: tuple[Argument, ...]
    layouts: dict[str, Layout]
    attributes: dict[str, str]

    def is_only_carried(self, operation: Operation) -> bool:
        """Whether each use of its results leads, through additions and their like, to the next turns alone."""
        carried = tuple(self.operations[operation.loop].block) if operation.depth else ()
        pending = list(operation.results)
        seen = {*pending}
        while pending:
            name = pending.pop()
            for use in self._uses.get((operation.loop, name), ()):
                if use.name == "scf.yield" and not use.branches:
                    inside = carried[len(carried) - len(use.operands) :]  # the counter of a `for` is not handed on
                    reached = [own for own, after in zip(inside, use.operands, strict=True) if after == name]
                elif use.name == "scf.yield" or _GATHERS.match(use.name):
                    reached = [*use.results]
                else:
                    return False
                pending += [each for each in reached if each not in seen]
                seen.update(reached)
        return operation.depth > 0

    @cached_property
    def _uses(self) -> dict[tuple[int, str], list[Operation]]:
        """Operations by their loop and what they use."""
        found: dict[tuple[int, str], list[Operation]] = defaultdict(list)
        for operation in self.operations:
            for name in operation.operands:
                found[operation.loop, name].append(operation)
        return found


def place_of_chain(chain: CallChain) -> Place:
    """The line of the user's that a chain leads to."""
    found = user_place(chain)
    return Place(found.file, found.line) if found else Place()


def read_module(text: str, places: Sequence[CallChain]) -> Module:
    """Read a module.

    Args:
        text: Of TTIR or TTGIR.
        places: Where each line comes from.

    Raises:
        ValueError: It has no kernel, or breaks off.
    """
    reader = _Reader()
    for row, (line, chain) in enumerate(zip(text.splitlines(), places, strict=True)):
        reader.read(row, line, chain)
    if reader.arguments is None or not reader.operations:
        raise ValueError("it has no kernel")
    if not reader.is_whole:
        raise ValueError("it breaks off")
    return Module(reader.operations, reader.arguments, reader.layouts, reader.attributes)


class _Reader:
    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.arguments: tuple[Argument, ...] | None = None
        self.layouts: dict[str, Layout] = {}
        self.attributes: dict[str, str] = {}
        # Of each open brace the row of its operation, or -1.
        self._open: list[int] = []
        # Regions use the names of regions before them again: what each name means where the text is read.
        self._names: dict[str, str] = {}
        self._n_renamed = 0

    @property
    def is_whole(self) -> bool:
        """Whether all braces are closed."""
        return not self._open

    def read(self, number: int, line: str, chain: CallChain) -> None:
        if line.startswith("#"):
            self._read_alias(line)
            return
        code = split_location(line.rstrip())[0]
        stripped = code.lstrip()
        row = -1
        if stripped.startswith("}") and self._open:
            row = self._open.pop()
            if row >= 0:
                last = self.operations[row]
                self.operations[row] = replace(last, text=f"{last.text} {stripped}")
        elif match := _OPERATION.match(code):
            row = self._add(match, number, code, chain)
        elif stripped.startswith("^"):
            self._enter(_VALUE.findall(code))
        elif stripped.startswith("module"):
            self.attributes = {name: number or text for name, number, text in _MODULE.findall(code)}
        if code.endswith("{"):
            self._open.append(row)

    def _add(self, match: re.Match[str], number: int, code: str, chain: CallChain) -> int:
        name = match["name"]
        if name == "tt.func":
            if self.arguments is None or " public " in code:
                self.arguments = tuple(_argument(found) for found in _ARGUMENT.finditer(code))
            return -1
        around = [row for row in self._open if row >= 0]
        loops = [at for at, row in enumerate(around) if self.operations[row].name in LOOPS]
        entered = dict(_ITER_ARG.findall(code)) if name in LOOPS else {}
        outside = [self._names.get(str(each), str(each)) for each in entered.values()]
        block = dict(zip(self._define(*entered), outside, strict=True))
        operands = tuple(self._names.get(each, each) for each in _VALUE.findall(code, match.end()))
        results = self._define(*_results(match["results"] or ""))
        loop = around[loops[-1]] if loops else -1
        branches = sum(self.operations[row].name == "scf.if" for row in around[loops[-1] + 1 if loops else 0 :])
        name = PURE_EXTERN if _PURE_EXTERN.search(code) else name
        made = Operation(name, results, operands, code, chain, loop, len(loops), block, number, branches)
        self.operations.append(made)
        return len(self.operations) - 1

    def _enter(self, names: list[str]) -> None:
        """A block begins: that of the body of a `while` with what its condition hands on."""
        last = self.operations[-1] if self.operations else None
        passed = last.operands[1:] if last is not None and last.name == "scf.condition" else ()
        if len(passed) == len(names):
            self._names.update(zip(names, passed, strict=True))
        else:
            self._define(*names)

    def _define(self, *names: str) -> tuple[str, ...]:
        """What names that are defined here mean from now on."""
        for name in names:
            self._n_renamed += name in self._names
            self._names[name] = f"{name}~{self._n_renamed}" if name in self._names else name
        return tuple(self._names[name] for name in names)

    def _read_alias(self, line: str) -> None:
        if match := _ALIAS.match(line):
            lists = {
                name: tuple(int(item) for item in items.split(",") if item.strip())
                for name, items in _LIST.findall(match["inside"])
            }
            self.layouts[match["name"]] = Layout(match["kind"], lists)


def _results(text: str) -> tuple[str, ...]:
    """Names of what an operation defines; `%a:2` is %a#0 and %a#1."""
    name, _, count = text.partition(":")
    return tuple(f"{name}#{at}" for at in range(int(count))) if count.isdecimal() else tuple(_VALUE.findall(text))


def _argument(match: re.Match[str]) -> Argument:
    divisibility = _DIVISIBILITY.search(match["attributes"] or "")
    return Argument(match["name"], match["type"], int(divisibility[1]) if divisibility else 1)


@dataclass(frozen=True)
class _Tile:
    """A type of tiles.

    Attributes:
        shape: Elements along each dimension.
        element: `f16`.
        layout: Alias of its layout; empty: none.
    """

    shape: tuple[int, ...]
    element: str
    layout: str

    @property
    def elements(self) -> int:
        product = 1
        for size in self.shape:
            product *= size
        return product

    @property
    def element_bytes(self) -> int:
        """At least 1."""
        bits = re.search(r"\d+", self.element)
        return max(int(bits[0]) // 8, 1) if bits else 1


def tile_of(text: str, number: int = 0) -> _Tile | None:
    """The type of a tile in the text of an operation: the first, or a later one; None: it has none."""
    found = list(_TILE.finditer(text))
    if number >= len(found):
        return None
    shape, _, element, layout = found[number].groups()
    return _Tile(tuple(int(size) for size in shape.split("x") if size), element, layout or "")
