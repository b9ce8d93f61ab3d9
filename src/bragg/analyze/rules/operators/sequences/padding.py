"""Sequences that are padded to a fixed length, or to the longest of all, by the text of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import calls_at
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding, Place, Severity

_CHANGE = (
    "if most sequences are shorter: pad each batch to its longest sequence, put sequences of like lengths together, or "
    "pack them (nested tensors, cu_seqlens)"
)
_FILLED = ("zeros", "full", "ones", "empty", "new_zeros", "new_full")
_LENGTHS = ("len", "max", "amax")


def _find(evidence: Evidence) -> Iterator[Finding]:
    named = {file for file in evidence.profile.tree.frames.file if file in evidence.profile.sources}
    for name in sorted(named):
        file = evidence.text.file(name)
        places = [Place(name, each.lineno) for each in _padded(file)] if file else []
        if places:
            yield Finding(
                "padded-batch",
                Severity.WARNING,
                "sequences are padded further than their batch needs, by the text of the program: how much of it is "
                "padding is not recorded",
                _CHANGE,
                file=name,
                line=places[0].line,
                places=tuple(places[1:]),
                confidence=Confidence.HEURISTIC,
            )


def _padded(file: FileText) -> Iterator[ast.expr]:
    """Where tensors are made of a fixed size, of which each row gets as much as it has, or lengths become masks.

    Where all sequences are padded to the longest of them, too.
    """
    packs = any(_packs(each) for each in walk(file.tree))
    for each in walk(file.tree):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store) and _is_beginning(each.slice):
            yield from (made for made in _made(file, each.value) if _is_fixed(file, made))
        elif (isinstance(each, ast.Compare) and not packs and _is_mask(file, each)) or (
            isinstance(each, ast.Constant) and each.value == "max_length" and _is_argument(file, each)
        ):
            yield each
    yield from _padded_at_once(file)


def _padded_at_once(file: FileText) -> Iterator[ast.expr]:
    """Where all sequences are padded together, and batches are then cut out of them without their padding."""
    cuts = [each for each in parts_of(file.tree, ast.Subscript) if isinstance(each.ctx, ast.Load)]
    if any(_is_trimmed(file, each) for each in cuts):
        return
    batches = [each.value for each in cuts if _is_batch(each.slice)]
    batches += [value for call in calls_at(file.tree, "TensorDataset") for value in call.args]
    made = {call for each in batches for call in file.makers(each) if call_name(call) == "pad_sequence"}
    yield from sorted(made, key=lambda each: each.lineno)


def _is_batch(index: ast.expr) -> bool:
    """Whether it is `[start : start + size]`: neither end is a constant."""
    ends = [index.lower, index.upper] if isinstance(index, ast.Slice) else []
    return bool(ends) and all(each is not None and not isinstance(each, ast.Constant) for each in ends)


def _is_trimmed(file: FileText, cut: ast.Subscript) -> bool:
    """Whether it is `[:, :longest]`, with a length that is a maximum."""
    ends = [each.upper for each in parts_of(cut.slice, ast.Slice)] if isinstance(cut.slice, ast.Tuple) else []
    return any(each is not None and _follows(file, each) for each in ends)


def _is_beginning(index: ast.expr) -> bool:
    """Whether it is `[:len(x)]`, `[i, :n]` or the like."""
    row, part = index.elts if isinstance(index, ast.Tuple) and len(index.elts) == 2 else (None, index)
    if not isinstance(part, ast.Slice) or part.lower is not None or not (row is None or isinstance(row, ast.Name)):
        return False
    is_length = isinstance(part.upper, ast.Call) and call_name(part.upper) == "len"
    return is_length or (row is not None and isinstance(part.upper, (ast.Name, ast.Call, ast.Subscript)))


def _made(file: FileText, value: ast.expr) -> list[ast.Call]:
    """Calls that make a tensor, or the tensors whose rows a loop takes."""
    made = [each for each in file.makers(value) if isinstance(each, ast.Call)]
    rows = [each for call in made if call_name(call) in ("zip", "enumerate") for each in call.args]
    return made + [each for row in rows for each in file.makers(row) if isinstance(each, ast.Call)]


def _is_argument(file: FileText, value: ast.Constant) -> bool:
    """Whether it is the value of an argument `padding`, or its default that no call replaces."""
    above = file.parents[value]
    if isinstance(above, ast.keyword):
        return above.arg == "padding"
    if not isinstance(above, ast.arguments):
        return False
    calls = parts_of(file.tree, ast.Call)
    return not any(keyword.arg == "padding" for call in calls for keyword in call.keywords)


def _is_fixed(file: FileText, made: ast.Call) -> bool:
    """Whether the size of a tensor does not follow from the sequences of a batch."""
    if call_name(made) not in _FILLED:
        return False
    sizes = made.args[0].elts if made.args and isinstance(made.args[0], (ast.Tuple, ast.List)) else made.args
    return len(sizes) >= 2 and not _follows(file, sizes[1])


def _follows(file: FileText, size: ast.expr) -> bool:
    called = {call_name(each) for each in file.origins(size) if isinstance(each, ast.Call)}
    return bool(called & set(_LENGTHS))


def _is_mask(file: FileText, compared: ast.Compare) -> bool:
    """Whether it is `torch.arange(n) < lengths[:, None]`, with an n that is no maximum of lengths."""
    if len(compared.ops) != 1 or not isinstance(compared.ops[0], (ast.Lt, ast.GtE, ast.Gt, ast.LtE)):
        return False
    sides = [compared.left, compared.comparators[0]]
    ranges = [made for side in sides for made in file.makers(side) if ast.unparse(made).startswith("torch.arange")]
    names = {each.id.lower() for side in sides for each in parts_of(side, ast.Name)}
    has_lengths = any("len" in name for name in names)
    return has_lengths and bool(ranges) and not any(_follows(file, each) for each in ranges)


def _packs(part: ast.AST) -> bool:
    """Whether rows are chosen by a mask: `x[mask]`."""
    return isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Name) and "mask" in part.slice.id


RULE = Rule(
    _find,
    "sequences that are padded to a fixed length, or to the longest of all",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    _CHANGE,
)
