"""Kernels that are launched one after the other, of which each goes on with the tiles of the one before."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, finding_of_kernel, names_text
from bragg.analyze.causes.needs import CODE, LAUNCHES, OF_KERNELS, TEXT
from bragg.analyze.causes.paths import lines_above
from bragg.analyze.causes.text.program_text import call_name
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import children, parts_of, stored_names, walk
from bragg.model import Confidence, Finding, Place, Quantity
from bragg.model.kernels.compiled import Access

_CHANGE = "one kernel for all of them: a program has the tile in registers, and need not load it again"
_LEAST_SAVED = 0.1  # of the bytes; our choice
_MOST_NODES = 20  # that launch a kernel
_MOST_NAMES, _MOST_TEXT = 8, 2_000  # one behind the other, and characters of an address
_NAME = re.compile(r"(?<![\w.'\"])([A-Za-z_]\w*)\b(?!=)")
_FIRST = re.compile(r"\(*(\w+)")
_UNKNOWN, _WIDE = "?", ".to(tl.int64)"
_CASTS = ("to", "float", "int")
_BLOCKS = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.While, ast.With)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False)
class _Launch:
    """A launch as the program writes it, `kernel[grid](x, out, n)`, and what each program of it accesses.

    Attributes:
        kernel: What it launches.
        place: Its line.
        grid: As it is written.
        passed: What parameters get, as it is written.
        function: The text of the kernel.
        following: The next statement; None: there is none.
    """

    kernel: HotKernel
    place: Place
    grid: str
    passed: dict[str, str]
    function: _Function
    following: ast.AST | None

    @cached_property
    def addresses(self) -> dict[tuple[str, bool], set[str]]:
        """Addresses by what is passed for their tensor, and whether they are stored to; empty: not known."""
        found: dict[tuple[str, bool], set[str]] = defaultdict(set)
        for call in parts_of(self.function, ast.Call):
            name = call_name(call)
            if not (ast.unparse(call.func).startswith("tl.") or name in _CASTS) or name.startswith(("atomic", "make_")):
                return {}
            if name in ("load", "store"):
                text = self._written(call.args[0])
                first = _FIRST.match(text)
                tensor = self.passed.get(first[1]) if first else None
                if tensor is None or _UNKNOWN in text:
                    return {}
                found[tensor, name == "store"].add(_NAME.sub(lambda part: self.passed.get(part[1], part[1]), text))
        return found

    def _written(self, address: ast.expr) -> str:
        """An address by parameters alone."""
        text = ast.unparse(address)
        for _ in range(_MOST_NAMES):
            text = _NAME.sub(lambda part: self._values.get(part[1], part[1]), text)[:_MOST_TEXT]
        return text.replace(_WIDE, "")

    @cached_property
    def _values(self) -> dict[str, str]:
        """What names stand for that are set once."""
        stored = stored_names(walk(self.function))
        values = dict.fromkeys(stored, _UNKNOWN)
        for each in parts_of(self.function, ast.Assign):
            target = each.targets[0]
            if isinstance(target, ast.Name) and stored.count(target.id) == 1:
                values[target.id] = f"({ast.unparse(each.value)})"
        return values

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (self.kernel.compiled.accesses if self.kernel.compiled else None) or ()

    def tensors(self, *, stored: bool) -> set[str]:
        return {tensor for tensor, is_store in self.addresses if is_store is stored}

    def size_bytes(self, tensors: set[str], *, stored: bool) -> int:
        """Of the tiles of some tensors."""
        chosen = (each for each in self.accesses if each.is_store is stored)
        return sum(each.size_bytes for each in chosen if self.passed.get(each.tensor) in tensors)

    def goes_on(self, before: _Launch) -> bool:
        """Whether each program takes up what the same program of another launch has stored, and of others nothing."""
        if self.grid != before.grid or self.kernel.launches[0].grid != before.kernel.launches[0].grid:
            return False
        stored, before_stored = self.tensors(stored=True), before.tensors(stored=True)
        shared = ({name for name, _ in self.addresses} & {name for name, _ in before.addresses}) & (
            stored | before_stored
        )
        places = {
            (tensor, text)
            for each in (self, before)
            for (tensor, _), texts in each.addresses.items()
            for text in texts
            if tensor in shared
        }
        return bool(before_stored & self.tensors(stored=False)) and len(places) == len(shared)


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = dict(_launches(evidence))
    taken = set[ast.AST | None]()
    for statement, launch in sorted(launches.items(), key=lambda each: (each[1].place.file, each[1].place.line)):
        chain = [launch]
        while (after := launches.get(chain[-1].following)) and all(after.goes_on(each) for each in chain):
            taken.add(chain[-1].following)
            chain.append(after)
        defect = None if statement in taken or len(chain) == 1 else _judge(chain)
        if defect:
            nodes = np.logical_or.reduce([each.kernel.nodes for each in chain])
            whole = replace(launch.kernel, nodes=nodes, share=sum(each.kernel.share for each in chain))
            yield finding_of_kernel(evidence, "chained-kernels", whole, defect)


def _launches(evidence: Evidence) -> Iterator[tuple[ast.AST | None, _Launch]]:
    """Statements that launch a kernel whose text is known, and nothing else."""
    tree = evidence.profile.tree
    for kernel in evidence.hot_kernels:
        accesses = (kernel.compiled.accesses if kernel.compiled else None) or ()
        text = evidence.text.file(accesses[0].place.file) if accesses and kernel.has_one_grid else None
        functions = text.functions.get(kernel.base, []) if text else []
        nodes = np.flatnonzero(kernel.nodes)[:_MOST_NODES].tolist() if len(functions) == 1 else []
        for line in {each for node in nodes for each in lines_above(evidence.profile, node)[-1:]}:
            at = evidence.text.at(line)
            call = at[1].value if at and isinstance(at[1], ast.Expr) else None
            if at and isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript):
                file, statement = at
                place = Place(tree.frames.file[tree.frame[line]], statement.lineno)
                block = file.parents[statement]
                beside = children(block) if isinstance(block, _BLOCKS) else [statement]
                following = next(iter(beside[beside.index(statement) + 1 :]), None)
                passed = _passed(call, functions[0])
                yield statement, _Launch(kernel, place, ast.unparse(call.func.slice), passed, functions[0], following)


def _passed(call: ast.Call, function: _Function) -> dict[str, str]:
    names = [each.arg for each in function.args.args]
    spread = [ast.unparse(each.value) for each in call.keywords if each.arg is None]
    given = dict(zip(names, call.args, strict=False)) | {each.arg: each.value for each in call.keywords if each.arg}
    return {name: ast.unparse(given[name]) if name in given else f"{name} of {spread}" for name in names}


def _judge(chain: list[_Launch]) -> Defect | None:
    moved = sum(access.size_bytes for each in chain for access in each.accesses)
    spared = sum(
        after.size_bytes(before.tensors(stored=True), stored=False)
        + before.size_bytes(after.tensors(stored=True), stored=True)
        for before, after in pairwise(chain)
    )
    if not moved or spared < _LEAST_SAVED * moved:
        return None
    return Defect(
        f"stores what {names_text([each.kernel.base for each in chain[1:]])} load again right behind it, each program "
        "its own tile",
        _CHANGE,
        spared / moved,
        Confidence.HEURISTIC,
        [each.place for each in chain],
        (Quantity("kernels", len(chain)), Quantity("bytes that need not move", spared / moved, "share")),
    )


RULE = Rule(
    _find,
    "Triton kernels that go on with the tiles of the kernel that is launched right before",
    (OF_KERNELS, CODE, LAUNCHES, TEXT),
    (MUCH_GPU,),
    _CHANGE,
)
