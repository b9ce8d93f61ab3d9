"""Products over all positions of a sequence, of which the program takes one or some afterwards."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named, place_of
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import argument, dimension, fits, operands, statements_above
from bragg.analyze.causes.text.uses import PartTest, computed_by_rows, use_of
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import parts_of
from bragg.model import Confidence, Finding
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

_WORK = Work(
    "late-part",
    "products over all positions, of which the calling function uses one",
    "take the position before the product: head(h[:, -1]) instead of head(h)[:, -1]",
    0.9,
    Confidence.HEURISTIC,
    least_share=0.1,
    is_launched=True,
)
_CHOSEN = replace(
    _WORK,
    what="products over all positions, of which a mask chooses some afterwards",
    change="choose before the product, if the mask leaves few: head(h[mask]) instead of head(h)[mask]",
    saved=0.7,
)
_MASKED = replace(
    _WORK,
    what="layers compute all positions, of which a mask sets some to zero afterwards (how many is not recorded)",
    change="if it leaves few, choose them first: y = torch.zeros(...); y[mask] = layer(x[mask])",
    saved=None,
)
_LOOKED_UP = replace(
    _WORK,
    what="products over all rows of a table, of which the program looks some up afterwards",
    change="look rows up before the product: layer(table[index]) instead of layer(table)[index]",
    saved=0.8,
)
_GATHERED = replace(
    _LOOKED_UP,
    what="products with all rows of a table, of whose results the program gathers some",
    change='gather rows first, if they are few: torch.einsum("bd,bkd->bk", x, table[index]) in place of '
    "(x @ table.T).gather(1, index)",
)
_ALL_ROWS = replace(
    _LOOKED_UP,
    what="elementwise operators compute all rows of a table, of which the program looks some up afterwards",
    change="look rows up first: frames[index].float() / 255 instead of (frames.float() / 255)[index]",
)
_STRIDED = replace(
    _WORK,
    what="convolutions at all positions, of which the program takes one in several",
    change="let the convolution leave them out: stride=n in place of [:, :, ::n]",
    saved=0.7,
)
_AVERAGED = replace(
    _WORK,
    what="products over all positions, of whose results the program takes the mean",
    change="they commute: layer(x.mean(1)) in place of layer(x).mean(1) multiplies one row",
)
_CROPPED = replace(
    _WORK,
    what="elementwise operators compute whole images, of which the program cuts out a part afterwards",
    change="cut it out first, if it is a small part: x[:, :, top:bottom, left:right].float() / 255",
    saved=0.7,
)
_INTERPOLATED = replace(
    _CROPPED,
    what="whole images are interpolated, of which the program cuts out a part afterwards",
    change="cut it out first, with a margin, if it is a small part",
)
_FEW = 0.1
_LOOKUPS = re.compile(r"aten::(?:index|index_select|embedding|gather)")
_LINEAR = re.compile(r"aten::(?:linear|addmm)")
_CONVOLUTIONS = re.compile(r"aten::conv[123]d")
_NORMS = re.compile(r"aten::(?:linalg_vector_norm|norm|clamp_min|div)")
_PRODUCTS = re.compile(r"aten::(?:linear|matmul|mm|bmm|addmm|einsum)")
# What computes a position of others: a layer of a library that does is needed at all positions.
_MIXES = re.compile(r"aten::(?:\w*attention\w*|_?softmax|bmm|baddbmm|cumsum|convolution|lstm|gru|rnn_\w+)")
_ELEMENTWISE = re.compile(
    r"aten::(?:to|mul|div|add|sub|rsub|pow|clamp|exp|log|sqrt|neg|abs|float|half|sigmoid|tanh|relu|gelu|silu)_?"
)
_INTERPOLATIONS = re.compile(r"aten::upsample_\w+")
_MASKS = re.compile(r"(?:\w+_)?(?:mask|valid|active|alive|keep|present)(?:_\w+)?")
_RAISES = ("unsqueeze", "float", "to", "type_as", "view", "half", "expand_as")
_COMPARES = {
    *("eq", "ne", "lt", "le", "gt", "ge", "bool"),
    *("isnan", "isfinite", "logical_and", "logical_or", "logical_not"),
}
_WEIGHS = ("sigmoid", "softmax", "tanh", "exp", "relu", "bernoulli", "dropout", "rand", "rand_like", "sin", "cos")
# Where keys and values of earlier positions are kept, there is one position.
_CACHES = re.compile(r"\b\w*(?:cache|past|kv)\w*\b", re.I)


@dataclass(frozen=True)
class _Late:
    """A product that could be smaller.

    Attributes:
        taker: The line that takes a part of its result, or calls what does.
        begins: The line from which on the part is enough: that of the product, or of a call that hands it its rows.
        lines: Of the function that this is about: of the product, and of what it computes from each row alone; all of
            one that is handed its rows.
    """

    taker: NodeId
    begins: NodeId
    lines: tuple[NodeId, ...]


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, works = evidence.profile, evidence.profile.tree.sum_up(evidence.gpu_ns)
    for is_meant, work in _KINDS:
        found: dict[int, _Late] = {}
        for node in np.flatnonzero(_operators(evidence, work)).tolist():
            late = _taken(evidence, node, is_meant, by_rows=work in _BY_ROWS)
            if late and (work not in (_LOOKED_UP, _GATHERED, _ALL_ROWS) or _is_few(evidence, node, late)):
                found[node] = late
        chosen = np.zeros(len(profile.tree), np.bool_)
        for node, late in found.items():
            chosen[[node, *late.lines]] = True
        for finding in work_findings(evidence, below(profile, chosen), work):
            lines = sorted({each.begins for each in found.values()}, key=lambda line: (-float(works[line]), line))
            begins = [place_of(profile, line) for line in lines]
            others = [place_of(profile, line) for line in dict.fromkeys(each.taker for each in found.values())]
            yield moved_to(finding, [*begins, *others])


def _operators(evidence: Evidence, work: Work) -> BoolArray:
    """Operators that a kind of finding is about: [n_nodes]."""
    profile = evidence.profile
    called = (evidence.callers.line > 0) & evidence.has_work
    if work is _STRIDED:
        return called & named(profile, _CONVOLUTIONS.fullmatch)
    elementwise = called & named(profile, _ELEMENTWISE.fullmatch)
    if work is _CROPPED:
        return elementwise
    if work is _INTERPOLATED:
        return called & named(profile, _INTERPOLATIONS.fullmatch)
    line = evidence.callers.line
    if work is _ALL_ROWS:
        return elementwise & ~np.isin(line, line[named(profile, _NORMS.fullmatch) & ~elementwise])
    products = called & named(profile, _PRODUCTS.fullmatch)
    products &= ~np.isin(line, line[called & named(profile, _MIXES.fullmatch)])
    if work is _MASKED:
        return products & named(profile, _LINEAR.fullmatch)
    if work is _AVERAGED:
        return fits(evidence, products, _is_plain_layer)
    norms = fits(evidence, called & named(profile, _NORMS.fullmatch), _is_of_rows)
    return products | norms if work is _LOOKED_UP else products


def _taken(evidence: Evidence, node: int, is_meant: PartTest, *, by_rows: bool) -> _Late | None:
    """Who takes a part of a product, which a function it calls has returned; None: nobody does.

    What takes one position in the same function is not meant: operators tell it, and a rule of its own.
    """
    begins: NodeId | None = None
    lines: tuple[NodeId, ...] = ()
    hands_on = True
    above = list(statements_above(evidence, node))
    for depth, (line, file, statement) in enumerate(above):
        function = file.function_of(statement)
        if any(_CACHES.search(each.arg) for each in parts_of(function, ast.arg)):
            return None
        if begins is None:
            begins, lines = line, _later_lines(evidence, above[0]) if by_rows else ()
        elif hands_on:
            begins, lines = line, _lines_beside(evidence, above[depth - 1][0])
        hands_on = hands_on and _hands_on(file, statement)
        use = use_of(file, statement, is_meant, by_rows=by_rows)
        if use == "part":
            is_told = (depth > 0 or is_meant is not _is_part) and (depth == 0 or is_meant is not _is_gathered)
            return _Late(line, begins, lines) if is_told else None
        if use != "returned":
            return None
    return None


def _later_lines(evidence: Evidence, product: tuple[NodeId, FileText, ast.stmt]) -> tuple[NodeId, ...]:
    """The lines that compute something from each row of a product alone."""
    line, file, statement = product
    later = computed_by_rows(file, statement)
    beside = ((each, evidence.text.at(each)) for each in _lines_beside(evidence, line))
    return tuple(each for each, at in beside if at and at[1] in later)


def _lines_beside(evidence: Evidence, line: NodeId) -> tuple[NodeId, ...]:
    """All lines of the same call of a function."""
    function = evidence.callers.function_of_line
    return tuple(map(NodeId, np.flatnonzero(function == function[line]).tolist()))


def _hands_on(file: FileText, statement: ast.stmt) -> bool:
    """Whether what a statement computes with are parameters of its function, as these were given."""
    function = file.function_of(statement)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    given = {each.arg for each in function.args.args}
    handed = [value for call in parts_of(statement, ast.Call) for value in call.args]
    names = {each.id for value in handed for each in parts_of(value, ast.Name)} - {"self", "torch"}
    return bool(names) and names <= given and not any(file.sets(name, function) for name in names)


def _is_few(evidence: Evidence, node: int, late: _Late) -> bool:
    """Whether what is looked up is little beside what was computed, by the time that both take."""
    callers = evidence.callers
    lookups = named(evidence.profile, _LOOKUPS.fullmatch) & (callers.function == callers.function_of_line[late.taker])
    inclusive = evidence.profile.tree.sum_up(evidence.gpu_ns)
    return 0 < float(inclusive[lookups].sum()) < _FEW * float(inclusive[node])


def _is_chosen(file: FileText, value: ast.AST) -> bool:
    """Whether it is `x[mask]`, with a mask that is a comparison."""
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Name):
        return False
    return any(isinstance(each, ast.Compare) for each in file.makers(value.slice))


def _is_masked(file: FileText, value: ast.AST) -> bool:
    """Whether it is `x * mask[..., None]`."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mult):
        return False
    return any(_is_mask(file, each) for each in (value.left, value.right))


def _is_mask(file: FileText, value: ast.expr) -> bool:
    """Whether it is a comparison, or is named as a mask, and not computed as weights are."""
    made = file.makers(value)
    if any(isinstance(each, ast.Compare) or call_name(each) in _COMPARES for each in made):
        return True
    while isinstance(value, (ast.Call, ast.Subscript)) or (isinstance(value, ast.Attribute) and value.attr == "T"):
        value = value.func if isinstance(value, ast.Call) else value.value
        value = value.value if isinstance(value, ast.Attribute) and call_name(value) in _RAISES else value
    return bool(_MASKS.fullmatch(call_name(value))) and not any(call_name(each) in _WEIGHS for each in made)


def _is_looked_up(file: FileText, value: ast.AST) -> bool:
    """Whether it is `x[index]`, with an index that is no comparison and no number."""
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, (ast.Name, ast.Attribute)):
        return False
    return not _is_chosen(file, value) and not any(map(_is_number, file.makers(value.slice)))


def _is_gathered(file: FileText, value: ast.AST) -> bool:
    """Whether it is `x.gather(1, index)` or `x[rows, index]`."""
    if isinstance(value, ast.Attribute):
        return value.attr == "gather"
    if isinstance(value, ast.Call) and call_name(value) == "gather":
        return True
    places = value.slice.elts if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple) else []
    return len(places) > 1 and all(isinstance(each, (ast.Name, ast.Attribute, ast.Call)) for each in places)


def _is_part(file: FileText, value: ast.AST) -> bool:
    """Whether it is `x[:, -1]`, or the like: one position, beside a slice."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return _is_part(file, value.func.value)
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Tuple):
        return False
    parts = value.slice.elts
    slices = [isinstance(each, ast.Slice) or (isinstance(each, ast.Constant) and each.value is ...) for each in parts]
    return any(slices) and any(_is_number(each) for each in parts)


def _is_strided(_: FileText, value: ast.AST) -> bool:
    """Whether it is `x[:, :, ::2]`."""
    parts = value.slice.elts if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple) else []
    steps = [each.step for each in parts if isinstance(each, ast.Slice) and each.step is not None]
    return bool(steps) and not any(isinstance(each, ast.Constant) and each.value == 1 for each in steps)


def _is_cropped(_: FileText, value: ast.AST) -> bool:
    """Whether it is `x[:, :, top:bottom, left:right]`: cut at both ends of two dimensions, not by a margin."""
    parts = value.slice.elts if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple) else []
    ends = [each.upper for each in parts if isinstance(each, ast.Slice) and each.step is None]
    return sum(each is not None and not isinstance(each, ast.UnaryOp) for each in ends) >= 2


def _is_cut_inside(file: FileText, value: ast.AST) -> bool:
    """Whether it is cut at all four sides: `x[..., :h, :w]` may drop a margin."""
    slices = parts_of(value.slice, ast.Slice) if isinstance(value, ast.Subscript) else ()
    return _is_cropped(file, value) and sum(each.lower is not None for each in slices) >= 2


def _is_averaged(file: FileText, value: ast.AST) -> bool:
    """Whether it is `x.mean(1)`: along positions."""
    call = file.parents[value] if isinstance(value, ast.Attribute) else value
    return isinstance(call, ast.Call) and call_name(call) == "mean" and dimension(call) in (1, -2)


def _is_plain_layer(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement computes a linear layer or a product, and at most their mean."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None
    if isinstance(value, ast.Call) and call_name(value) == "mean":
        value = operands(value)[0] if operands(value) else None
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, ast.MatMult)
    made = file.makers(value.func) if isinstance(value, ast.Call) and len(value.args) == 1 else []
    return bool(made) and all(isinstance(each, ast.Call) and call_name(each) == "Linear" for each in made)


def _is_of_rows(_: FileText, statement: ast.stmt) -> bool:
    """Whether a statement normalizes rows alone: `F.normalize(table, dim=-1)`."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None
    if not isinstance(value, ast.Call) or call_name(value) != "normalize":
        return False
    dim = argument(value, "dim", 2)
    return dim is None or ast.unparse(dim) in ("1", "-1")


def _is_number(index: ast.expr) -> bool:
    value = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


_KINDS: tuple[tuple[PartTest, Work], ...] = (
    (_is_part, _WORK),
    (_is_chosen, _CHOSEN),
    (_is_masked, _MASKED),
    (_is_looked_up, _LOOKED_UP),
    (_is_looked_up, _ALL_ROWS),
    (_is_gathered, _GATHERED),
    (_is_strided, _STRIDED),
    (_is_averaged, _AVERAGED),
    (_is_cropped, _CROPPED),
    (_is_cut_inside, _INTERPOLATED),
)
# Of positions: what else commutes with them than products.
_BY_ROWS = (_WORK, _CHOSEN, _MASKED, _LOOKED_UP, _ALL_ROWS, _CROPPED)
RULE = Rule(
    _find, "products over all positions of which some are taken later", (GPU_TIME, OPERATORS, TEXT), (), _WORK.change
)
