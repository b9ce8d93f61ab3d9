"""Borders of zeros that are written around an image for a convolution, which can add them itself."""

from __future__ import annotations

import ast
import re

from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import argument, calls_at, is_layer
from bragg.analyze.causes.text.uses import is_only_for
from bragg.analyze.rules.operators.calls.kinds import Call

_LAYERS = re.compile(r"Conv[123]d")
_CALLS = re.compile(r"conv[123]d")


def _is_for_convolution(file: FileText, statement: ast.stmt) -> bool:
    """Whether zeros are put around what a convolution alone reads: `conv(F.pad(x, (1, 1, 1, 1)))`."""
    made = [each for each in calls_at(statement, "pad") if _is_even(each) and _is_of_zeros(each)]
    return is_only_for(file, statement, made, _convolves)


def _convolves(file: FileText, value: ast.AST) -> bool:
    return isinstance(value, ast.Call) and (bool(_CALLS.fullmatch(call_name(value))) or is_layer(file, value, _LAYERS))


def _is_even(pad: ast.Call) -> bool:
    """Whether as much is put before as behind: `(1, 1, 2, 2)`, `[p] * 4`."""
    sizes = argument(pad, "pad", 1)
    if (
        isinstance(sizes, ast.BinOp)
        and isinstance(sizes.op, ast.Mult)
        and isinstance(sizes.left, (ast.Tuple, ast.List))
    ):
        return len(sizes.left.elts) == 1
    parts = [ast.dump(each) for each in sizes.elts] if isinstance(sizes, (ast.Tuple, ast.List)) else []
    return bool(parts) and parts[::2] == parts[1::2]


def _is_of_zeros(pad: ast.Call) -> bool:
    mode, value = argument(pad, "mode", 2), argument(pad, "value", 3)
    is_constant = mode is None or ast.unparse(mode) == "'constant'"
    return is_constant and (value is None or ast.unparse(value) in ("0", "0.0"))


BORDERS = (
    Call(
        "zeros are written around images, and all of these copied, for a convolution",
        "let the convolution add them: padding=1 of nn.Conv2d or conv2d in place of F.pad(x, (1, 1, 1, 1))",
        "pad|constant_pad_nd",
        _is_for_convolution,
        1.0,
    ),
)
