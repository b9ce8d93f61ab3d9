"""Loops whose turns each read all of a tensor, for one number: a class, a bin, a lag or a tap."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.program_text import FileText, call_name, names_read, names_set
from bragg.analyze.causes.text.text_calls import calls_at, fits
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding

_COUNTS = Work(
    "pass-per-value",
    "a loop compares a whole tensor with one number in each turn, to count what fits",
    "count all numbers in one pass: torch.bincount(x, minlength=n), torch.bucketize and bincount for bins; "
    "bincount(n * target + pred) for pairs of classes",
    0.8,
    Confidence.HEURISTIC,
    with_host=True,
    least_share=0.1,
    is_launched=True,
)
_LAGS = replace(
    _COUNTS,
    what="a loop multiplies a tensor with itself, shifted by one number in each turn",
    change="all lags at once: x = torch.fft.rfft(x, 2 * n); torch.fft.irfft(x * x.conj())",
)
_TAPS = replace(
    _COUNTS,
    what="a loop adds up shifted parts of a tensor, each times a factor of its own",
    change="a convolution adds up all of them in one pass, if the factors are numbers: "
    "torch.nn.functional.conv1d(x[:, None], taps[None, None])",
    saved=0.5,  # 64 taps over 32 x 8,192 values on one core of a CPU: 51 %
)
_ADDS = re.compile(r"aten::(?:add|mul|addcmul)_?")
_OPERATORS = re.compile(r"aten::(?:eq|ne|[gl][te]|bitwise_and|logical_and|mul|sum|mean|count_nonzero|to)")
_REDUCTIONS = ("sum", "mean", "count_nonzero")


def _find(evidence: Evidence) -> Iterator[Finding]:
    for operators, test, work in (
        (_OPERATORS, _of_numbers(_counts), _COUNTS),
        (_OPERATORS, _of_numbers(_shifts), _LAGS),
        (_ADDS, _adds_taps, _TAPS),
    ):
        chosen = fits(evidence, named(evidence.profile, operators.fullmatch) & evidence.has_work, test)
        yield from work_findings(evidence, below(evidence.profile, chosen), work)


def _of_numbers(is_meant: Callable[[ast.AST, set[str]], bool]) -> Callable[[FileText, ast.stmt], bool]:
    """Whether a statement reduces what is meant, by the numbers that loops around it or in it count."""

    def is_meant_there(file: FileText, statement: ast.stmt) -> bool:
        inner = list(parts_of(statement, ast.comprehension))
        loops = [each for each in (*file.loops_of(statement), *inner) if not isinstance(each, ast.While)]
        numbers = {name for each in loops for name in _numbers(each)}
        if not numbers or not calls_at(statement, *_REDUCTIONS):
            return False
        function = file.function_of(statement)
        made = [value for name in sorted(names_read(statement)) for value in file.assigned(name, function)]
        return any(is_meant(each, numbers) for each in (statement, *made))

    return is_meant_there


def _numbers(loop: ast.For | ast.AsyncFor | ast.comprehension) -> set[str]:
    """Variables that a loop sets to numbers: of a range, or of `zip(edges[:-1], edges[1:])`."""
    if not isinstance(loop.iter, ast.Call):
        return set()
    is_range = call_name(loop.iter) == "range"
    of_edges = call_name(loop.iter) == "zip" and all(isinstance(each, ast.Subscript) for each in loop.iter.args)
    return names_set(loop.target) if is_range or of_edges else set()


def _counts(part: ast.AST, numbers: set[str]) -> bool:
    """Whether it compares what does not depend on a number with it: `(x == k).sum()`."""
    for each in walk(part):
        sides = [each.left, *each.comparators] if isinstance(each, ast.Compare) else []
        is_number = [isinstance(side, ast.Name) and side.id in numbers for side in sides]
        read = {name for side, number in zip(sides, is_number, strict=True) if not number for name in names_read(side)}
        if any(is_number) and read and not read & numbers:
            return True
    return False


def _shifts(part: ast.AST, numbers: set[str]) -> bool:
    """Whether it is a product of two parts of one tensor that begin or end at a number: `x[:-k] * x[k:]`."""
    for each in walk(part):
        sides = [each.left, each.right] if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult) else []
        parts = [side for side in sides if isinstance(side, ast.Subscript) and _is_cut(side, numbers)]
        if len(parts) == 2 and ast.dump(parts[0].value) == ast.dump(parts[1].value):
            return True
    return False


def _adds_taps(file: FileText, statement: ast.stmt) -> bool:
    """Whether a loop over numbers adds to a variable as a filter does: `out += taps[k] * x[:, k : k + n]`."""
    loops = [each for each in file.loops_of(statement) if isinstance(each, ast.For)]
    numbers = {name for each in loops for name in _numbers(each)}
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
    is_sum = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)
    is_sum |= (
        isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and names_set(statement) <= names_read(value)
    )
    if value is None or not is_sum or not names_set(statement):
        return False
    products = (each for each in parts_of(value, ast.BinOp) if isinstance(each.op, ast.Mult))
    return any(_is_tap(each.left, each.right, numbers) or _is_tap(each.right, each.left, numbers) for each in products)


def _is_tap(factor: ast.expr, part: ast.expr, numbers: set[str]) -> bool:
    if not isinstance(factor, ast.Subscript) or not isinstance(part, ast.Subscript):
        return False
    is_single = bool(names_read(factor.slice) & numbers) and not any(parts_of(factor.slice, ast.Slice))
    return is_single and _is_cut(part, numbers)


def _is_cut(part: ast.Subscript, numbers: set[str]) -> bool:
    return any(isinstance(each, ast.Slice) and bool(names_read(each) & numbers) for each in walk(part.slice))


RULE = Rule(
    _find,
    "loops that read all of a tensor for each class, bin, lag or tap",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    "torch.bincount, torch.bucketize, torch.fft.rfft, conv1d: one pass for all",
    host_time=HostTime.CAUSE,
)
