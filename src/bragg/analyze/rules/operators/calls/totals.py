"""Reductions that compute more than is used, or the same order for each number."""

from __future__ import annotations

import ast
from functools import partial

from bragg.analyze.causes.text.program_text import FileText, call_name, names_read, names_set
from bragg.analyze.causes.text.text_calls import calls_at, dimension, operands
from bragg.analyze.causes.text.uses import is_only_for
from bragg.analyze.rules.operators.calls.kinds import Call
from bragg.code.python_nodes import parts_of

_RUNNING = ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
_QUANTILES = ("quantile", "nanquantile")


def _is_last_of_running(file: FileText, statement: ast.stmt) -> bool:
    """Whether of a running sum the last value alone is read: `x.cumsum(1)[:, -1]`."""
    return any(
        is_only_for(file, statement, [made], partial(_takes_last, along=dimension(made)))
        for made in calls_at(statement, *_RUNNING)
    )


def _takes_last(_: FileText, part: ast.AST, along: int | None) -> bool:
    """Whether it takes the last place along a dimension: `[:, -1]` along 1, `[..., -1]` along -1."""
    if not isinstance(part, ast.Subscript) or along is None:
        return False
    places = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    if (along < 0) != (isinstance(places[0], ast.Constant) and places[0].value is ...):
        return False
    return -len(places) <= along < len(places) and ast.unparse(places[along]) == "-1"


def _is_one_of_quantiles(file: FileText, statement: ast.stmt) -> bool:
    """Whether a function, or a loop of it, computes several quantiles of a tensor by a call for each."""
    function = file.function_of(statement)
    others = [each for each in parts_of(function, ast.Call) if call_name(each) in _QUANTILES]
    targets = [each.target for each in parts_of(statement, ast.comprehension)]
    targets += [each.target for each in file.loops_of(statement)[-1:] if isinstance(each, ast.For)]
    counted = {name for each in targets for name in names_set(each)}
    return any(
        any(names_read(each) & counted for each in made.args if each not in operands(made))
        or sum(_is_of_same(made, other) for other in others) > 1
        for made in calls_at(statement, *_QUANTILES)
        if not any(names_read(each) & counted for each in operands(made))
    )


def _is_of_same(call: ast.Call, other: ast.Call) -> bool:
    return [ast.dump(each) for each in operands(call)] == [ast.dump(each) for each in operands(other)]


TOTALS = (
    Call(
        "running totals are written, of which the last alone is used",
        "torch.sum (prod, logsumexp, amax, amin): it writes the total alone",
        "|".join(_RUNNING),
        _is_last_of_running,
        0.5,
    ),
    Call(
        "several quantiles of a tensor are computed by a call for each, which sorts it again",
        "one call sorts once for all of them: torch.quantile(x, torch.tensor([0.25, 0.75], device=x.device), dim=1)",
        "|".join(_QUANTILES),
        _is_one_of_quantiles,
        0.5,
    ),
)
