"""What a call instead of which another needs less work is told by."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.text.program_text import FileText
from bragg.analyze.causes.text.text_calls import fits
from bragg.code.python_nodes import parts_of
from bragg.model.table import BoolArray


@dataclass(frozen=True)
class Call:
    """Calls of one kind.

    Attributes:
        what: What is computed.
        change: What to call instead.
        operators: Of the statement, whose work is meant.
        is_meant: Whether a statement makes such a call.
        saved: Share of their time that goes away.
        beside: Operators close by, whose work is meant, too; empty: there are none.
        inner: One of these has to run in the operators; empty: none has to.
    """

    what: str
    change: str
    operators: str
    is_meant: Callable[[FileText, ast.stmt], bool]
    saved: float
    beside: str = ""
    inner: str = ""

    def found(self, evidence: Evidence) -> BoolArray:
        """The operators that are meant: [n_nodes]."""
        chosen = fits(evidence, _named(evidence, self.operators), self.is_meant)
        if self.inner:
            chosen &= evidence.profile.tree.sum_up(_named(evidence, self.inner).astype(np.int64)) > 0
        if self.beside:
            chosen |= evidence.callers.near(_named(evidence, self.beside), chosen)
        return chosen


def _named(evidence: Evidence, operators: str) -> BoolArray:
    return named(evidence.profile, re.compile(rf"aten::(?:{operators})").fullmatch) & evidence.has_work


def products(statement: ast.stmt) -> list[ast.BinOp]:
    """Products that are written with `@`."""
    return [each for each in parts_of(statement, ast.BinOp) if isinstance(each.op, ast.MatMult)]
