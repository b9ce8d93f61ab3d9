"""Programs without a GPU that make text or bytes of their values: JSON, CSV, pickles, prints, logs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_steps import HostCost, host_steps
from bragg.analyze.causes.host_work import NO_GPU, host_work
from bragg.analyze.causes.needs import HOST_TIME
from bragg.analyze.causes.paths import below, in_files, named
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.engine import Rule
from bragg.model import Finding, FrameKind
from bragg.model.table import BoolArray

_LEAST = 0.1
# Beside calls of these, what writes takes the time of a line; products and comprehensions may take long, too.
_SHORT = {"len", "str", "repr", "int", "float", "round", "format", "join", "item", "write", "flush", "time", "items"}
_LONG = (ast.MatMult, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ARRAYS = "arrays as bytes (x.numpy().tobytes(), np.save)"


@dataclass(frozen=True)
class _Form:
    """A form that values are written in.

    Attributes:
        does: What the program does.
        files: Of the library's code, where it is Python.
        names: Of its functions there that write.
        calls: Names of functions of native code, which have no frames of their own.
        change: What to do about it.
        saved: Share of the time that goes away, 0 to 1.
    """

    does: str
    files: str
    names: str
    calls: tuple[str, ...]
    change: str
    saved: float


_FORMS = (
    _Form(
        "values become JSON",
        r"[/\\]json[/\\](?:__init__|encoder)\.py",
        r"dumps?$|JSONEncoder\.|_make_iterencode|_iterencode",
        (),
        f"write {_ARRAYS}; a faster library (orjson, which takes NumPy's arrays); fewer values or digits",
        0.9,
    ),
    _Form(
        "values become CSV",
        r"[/\\]csv\.py|[/\\]pandas[/\\]io[/\\]formats[/\\]\w+\.py|[/\\]numpy[/\\]lib[/\\]_?npyio\w*\.py",
        r"DictWriter\.|CSVFormatter\.|savetxt",
        ("writerow", "writerows"),
        "write a binary form: np.save, to_parquet, to_feather",
        0.9,
    ),
    _Form(
        "objects are pickled",
        r"[/\\]pickle\.py",
        r"_?Pickler\.|_?dumps?$",
        ("pickle.dumps", "pickle.dump"),
        "keep numbers in arrays, not in lists or objects, and write these as bytes",
        0.7,
    ),
    _Form(
        "lines are printed",
        r"[/\\]numpy[/\\]_?core[/\\]arrayprint\.py|[/\\]torch[/\\]_tensor_str\.py",
        r".",
        ("print",),
        "print fewer lines and numbers, or join lines and write them once",
        0.5,
    ),
    _Form(
        "messages are logged",
        r"[/\\]logging[/\\]__init__\.py",
        r".",
        (),
        "log fewer messages: a summary of some hundred turns, or a higher level",
        0.9,
    ),
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    # A rule of its own names what holds up steps.
    others = evidence.host.output if host_steps(evidence) else np.zeros(len(evidence.profile.tree), np.bool_)
    for form in _FORMS:
        nodes = (_in_library(evidence, form) | _called(evidence, form)) & ~others
        yield from host_work(evidence, nodes, HostCost("serialization", form.does, form.change, form.saved), _LEAST)


def _in_library(evidence: Evidence, form: _Form) -> BoolArray:
    writes = named(evidence.profile, re.compile(rf"(?:{form.names})").match)
    return below(evidence.profile, in_files(evidence.profile, re.compile(rf"(?:{form.files})$")) & writes)


def _called(evidence: Evidence, form: _Form) -> BoolArray:
    """Lines of the program whose own time is that of such a call, by their text."""
    tree = evidence.profile.tree
    chosen = np.zeros(len(tree), np.bool_)
    if form.calls:
        lines = np.flatnonzero((tree.kind == FrameKind.PYTHON) & (evidence.profile.own("host_time") > 0)).tolist()
        chosen[[line for line in lines if (at := evidence.text.at(line)) and _writes(*at, form.calls)]] = True
    return chosen


def _writes(file: FileText, statement: ast.stmt, names: tuple[str, ...]) -> bool:
    """Whether a statement calls one of these functions, and else nothing that takes long in itself."""
    if not isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.Return)):
        return False
    parts = list(ast.walk(statement))
    calls = [each for each in parts if isinstance(each, ast.Call)]
    meant = [each for each in calls if ast.unparse(each.func) in names or call_name(each) in names]
    others = {call_name(each) for each in calls if each not in meant} - file.functions.keys()
    return bool(meant) and others <= _SHORT and not any(isinstance(each, _LONG) for each in parts)


RULE = Rule(
    _find,
    "values that a program without a GPU writes as JSON, CSV, pickles, prints or logs",
    (HOST_TIME, NO_GPU),
    (),
    "write arrays as bytes, with a faster library, or less",
)
