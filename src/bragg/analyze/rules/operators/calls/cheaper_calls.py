"""Calls instead of which others need less work, by the text of the statements that make them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below
from bragg.analyze.causes.text.program_text import FileText, call_name, is_raised, names_read, names_set
from bragg.analyze.causes.text.repeated_values import made_by
from bragg.analyze.causes.text.text_calls import argument, calls_at, dimension, operands
from bragg.analyze.causes.text.uses import is_only_for, use_of
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.analyze.rules.operators.calls import draws
from bragg.analyze.rules.operators.calls.borders import BORDERS
from bragg.analyze.rules.operators.calls.kinds import Call, products
from bragg.analyze.rules.operators.calls.linear_algebra import ALGEBRA
from bragg.analyze.rules.operators.calls.long_filters import LONG_FILTERS
from bragg.analyze.rules.operators.calls.totals import TOTALS
from bragg.code.python_nodes import parts_of, walk
from bragg.model import Confidence, Finding

_SUMS = ("sum", "mean")
_ORDERED = ("softmax", "log_softmax", "sigmoid", "log", "sqrt")
_SIZED = ("zeros", "ones", "empty", "full", "rand", "randn", "randint")


def _find(evidence: Evidence) -> Iterator[Finding]:
    for kind in _CALLS:
        work = _work(kind.what, kind.change, kind.saved)
        yield from work_findings(evidence, below(evidence.profile, kind.found(evidence)), work)
    yield from work_findings(evidence, draws.draws(evidence), _work(draws.WHAT, draws.CHANGE, draws.SAVED))


def _work(what: str, change: str, saved: float) -> Work:
    heuristic = Confidence.HEURISTIC
    return Work("cheaper-call", what, change, saved, heuristic, with_host=True, least_share=0.1, is_launched=True)


def _sums(statement: ast.stmt, *names: str) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls of `x.sum(...)` and the like, with what they reduce."""
    for each in calls_at(statement, *names):
        yield from ((each, value) for value in operands(each))


def _is_bag(file: FileText, statement: ast.stmt) -> bool:
    """Whether rows of an embedding are looked up and added up: `self.table(ids).sum(1)`."""
    return any(
        dimension(each) in (1, -2) and any(_is_lookup(file, made) for made in file.makers(value))
        for each, value in _sums(statement, *_SUMS)
    )


def _is_lookup(file: FileText, made: ast.expr) -> bool:
    if not isinstance(made, ast.Call):
        return False
    layers = [each for each in file.attributes.get(call_name(made), []) if isinstance(each, ast.Call)]
    return any(call_name(each) == "Embedding" for each in layers) or ast.unparse(made.func).endswith(".embedding")


def _is_of_windows(file: FileText, statement: ast.stmt) -> bool:
    """Whether overlapping windows of a tensor are reduced: `x.unfold(-1, width, 1).mean(-1)`."""
    return any(
        isinstance(made, ast.Call)
        and call_name(made) == "unfold"
        and len(made.args) == 3
        and ast.dump(made.args[1]) != ast.dump(made.args[2])
        for _, value in _sums(statement, *_SUMS, "amax", "amin")
        for made in file.makers(value)
    )


def _is_of_patches(file: FileText, statement: ast.stmt) -> bool:
    """Whether windows of images are written, and then reduced: `F.unfold(x, size).amin(1)`."""
    return any(
        dimension(each) == 1 and call_name(made) == "unfold" and len(made.args) == 2
        for each, value in _sums(statement, *_SUMS, "amax", "amin", "max", "min")
        for made in file.makers(value)
        if isinstance(made, ast.Call)
    )


def _is_of_outers(file: FileText, statement: ast.stmt) -> bool:
    """Whether outer products of a batch are added up: `torch.bmm(x[:, :, None], y[:, None]).sum(0)`."""
    return any(
        isinstance(made, ast.Call) and (_is_outer_einsum(made) or (dimension(each) == 0 and _is_outer(made)))
        for each, value in _sums(statement, *_SUMS)
        for made in file.makers(value)
    )


def _is_outer(made: ast.Call) -> bool:
    return call_name(made) in ("bmm", "matmul") and len(made.args) == 2 and is_raised(*made.args)


def _is_outer_einsum(made: ast.Call) -> bool:
    """Whether it writes all products of two tensors, neither of which has all indices: `einsum("ci,di->cdi", f, g)`."""
    spec = made.args[0] if made.args and call_name(made) == "einsum" else None
    if not isinstance(spec, ast.Constant) or not isinstance(spec.value, str):
        return False
    factors, _, written = spec.value.replace(" ", "").partition("->")
    indices = [set(each) for each in factors.split(",")]
    return len(indices) == 2 and indices[0] | indices[1] == set(written) not in indices


def _is_across_rows(file: FileText, statement: ast.stmt) -> bool:
    """Whether elements of a matrix are gathered from all of its rows: `table[:, index]`."""
    return any(_is_matrix(file, each) for each in walk(statement) if _takes_columns(each))


def _takes_columns(part: ast.AST) -> bool:
    if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple) and isinstance(part.ctx, ast.Load):
        rows, *columns = part.slice.elts
        is_index = len(columns) == 1 and isinstance(columns[0], (ast.Name, ast.Attribute, ast.Call))
        return is_index and isinstance(rows, ast.Slice) and rows.lower is None and rows.upper is None
    if isinstance(part, ast.Call) and call_name(part) == "index_select":
        found = argument(part, "dim", 0 if len(part.args) == 2 else 1)
        return isinstance(found, ast.Constant) and found.value == 1
    return False


def _is_matrix(file: FileText, taken: ast.AST) -> bool:
    """Whether what is taken has two dimensions, as how it is turned or where it was made tells."""
    above = file.parents.get(taken)
    if isinstance(above, ast.Attribute) and above.attr in ("t", "T"):
        return True
    made = [each for owner in _owners(taken) for each in file.makers(owner)]
    return bool(made) and all(isinstance(each, ast.Call) and _n_sizes(each) == 2 for each in made)


def _owners(taken: ast.AST) -> list[ast.expr]:
    """The tensor that a part is taken of."""
    if isinstance(taken, ast.Subscript):
        return [taken.value]
    return operands(taken) if isinstance(taken, ast.Call) else []


def _n_sizes(made: ast.Call) -> int:
    """Dimensions of a tensor that a call makes; 0: not known."""
    if call_name(made) not in _SIZED:
        return 0
    sizes = [each for each in made.args if isinstance(each, (ast.Tuple, ast.List))]
    if sizes:
        return len(sizes[0].elts)
    return 0 if call_name(made) in ("full", "randint") else len(made.args)


def _is_permutation(file: FileText, statement: ast.stmt) -> bool:
    """Whether rows are chosen by a product with rows of a unit matrix: `torch.eye(n)[order] @ x`."""
    factors = [side for each in products(statement) for side in (each.left, each.right)]
    factors += [value for each in calls_at(statement, "matmul", "mm", "bmm", "einsum") for value in each.args]
    return any(
        call_name(made) == "eye" and isinstance(file.parents[made], ast.Subscript)
        for factor in factors
        for made in file.makers(factor)
        if isinstance(made, ast.Call)
    )


def _is_for_order(file: FileText, statement: ast.stmt) -> bool:
    """Whether a statement computes what keeps an order, and the place of the largest alone is taken of it."""
    if use_of(file, statement, _is_place) != "part":
        return False
    places = [each for each in parts_of(file.function_of(statement), ast.Call) if _is_place(file, each)]
    found = [(each, made) for each in places for value in operands(each) for made in file.makers(value)]
    return any(made in calls_at(statement, *_ORDERED) and _is_along(made, place) for place, made in found)


def _is_place(_: FileText, value: ast.AST) -> bool:
    return isinstance(value, (ast.Call, ast.Attribute)) and call_name(value) in ("argmax", "argmin")


def _is_along(made: ast.expr, place: ast.Call) -> bool:
    """Whether a softmax is along the dimension of which the largest is taken; others have no dimension."""
    if not isinstance(made, ast.Call) or "softmax" not in call_name(made):
        return True
    return dimension(made) == dimension(place) is not None


def _is_for_threshold(file: FileText, statement: ast.stmt) -> bool:
    """Whether a sigmoid is computed to compare it with a number: `torch.sigmoid(x) > 0.5`."""
    return is_only_for(file, statement, calls_at(statement, "sigmoid"), _compares)


def _compares(_: FileText, value: ast.AST) -> bool:
    return isinstance(value, ast.Compare) and isinstance(value.comparators[0], ast.Constant)


def _is_beginning_of_permutation(file: FileText, statement: ast.stmt) -> bool:
    """Whether of a permutation the beginning alone is read: `torch.randperm(n)[:k]`."""
    return is_only_for(file, statement, calls_at(statement, "randperm"), _is_beginning)


def _is_beginning(_: FileText, value: ast.AST) -> bool:
    part = value.slice if isinstance(value, ast.Subscript) else None
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is not None


def _is_of_distribution(file: FileText, statement: ast.stmt) -> bool:
    """Whether logarithms of probabilities are multiplied with rows that `scatter_` has set: `(true * logp).sum(-1)`."""
    pairs = [each for each in parts_of(statement, ast.BinOp) if isinstance(each.op, ast.Mult)]
    return bool(calls_at(statement, *_SUMS)) and any(
        _is_made_by(file, one, "log_softmax") and _is_scattered(file, other)
        for each in pairs
        for one, other in ((each.left, each.right), (each.right, each.left))
    )


def _is_made_by(file: FileText, value: ast.expr, name: str) -> bool:
    return any(isinstance(made, ast.Call) and call_name(made) == name for made in file.makers(value))


def _is_scattered(file: FileText, value: ast.expr) -> bool:
    calls = [each.func for each in walk(file.function_of(value)) if _is_scatter(each)]
    owners = {call_name(each.value) for each in calls if isinstance(each, ast.Attribute)}
    return call_name(value) in owners or any(map(_is_scatter, file.makers(value)))


def _is_scatter(value: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(value, ast.Call) and call_name(value) in ("scatter", "scatter_")


def _is_of_prefix(file: FileText, statement: ast.stmt) -> bool:
    """Whether a loop reduces all rows up to its turn: `x[:, :t].mean(1)`."""
    loops = [each for each in file.loops_of(statement) if isinstance(each, ast.For)]
    counters = {name for each in loops for name in names_set(each.target)}
    return any(_ends_at(made_by(file, value), counters) for _, value in _sums(statement, *_SUMS, "amax", "amin"))


def _ends_at(part: ast.expr, counters: set[str]) -> bool:
    """Whether it takes rows from the first to that of a counter."""
    if not isinstance(part, ast.Subscript):
        return False
    pieces = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    ends = [each.upper for each in pieces if isinstance(each, ast.Slice) and each.lower is None and each.upper]
    return any(names_read(each) & counters for each in ends)


def _is_order_of_order(file: FileText, statement: ast.stmt) -> bool:
    """Whether places are sorted again, for ranks: `x.argsort(-1).argsort(-1)`."""
    return any(
        isinstance(made, ast.Call) and call_name(made) == "argsort"
        for each in calls_at(statement, "argsort")
        for value in operands(each)
        for made in file.makers(value)
    )


def _is_sum_of_squares(file: FileText, statement: ast.stmt) -> bool:
    """Whether squares of parameters are added up for a loss: `total + p.pow(2).sum()`."""
    is_trained = any(call_name(each) == "backward" for each in parts_of(file.tree, ast.Call))
    names = [each for each in parts_of(statement, ast.Name) if isinstance(each.ctx, ast.Load)]
    around = [list(_around(file, each)) for each in names if _goes_through_parameters(file, each)]
    return is_trained and any(any(map(_is_square, parts)) and not any(map(_has_no_gradient, parts)) for parts in around)


def _goes_through_parameters(file: FileText, name: ast.Name) -> bool:
    made = file.assigned(name.id, file.function_of(name))
    return any(call_name(each) in ("parameters", "named_parameters") for each in made)


def _around(file: FileText, part: ast.AST) -> Iterator[ast.AST]:
    """What a part is in, the innermost first."""
    while part in file.parents:
        part = file.parents[part]
        yield part


def _has_no_gradient(part: ast.AST) -> bool:
    """Whether it is a gradient itself, or nothing in it gets one."""
    if isinstance(part, (ast.With, ast.FunctionDef)):
        made = [each.context_expr for each in part.items] if isinstance(part, ast.With) else part.decorator_list
        return any(call_name(each) in ("no_grad", "inference_mode") for each in made)
    return isinstance(part, ast.Attribute) and part.attr in ("grad", "data", "detach")


def _is_square(part: ast.AST) -> bool:
    if isinstance(part, ast.BinOp):
        is_power = isinstance(part.op, ast.Pow) and ast.unparse(part.right) in ("2", "2.0")
        return is_power or (isinstance(part.op, ast.Mult) and ast.unparse(part.left) == ast.unparse(part.right))
    return isinstance(part, ast.Call) and (
        call_name(part) == "square" or (call_name(part) == "pow" and ast.unparse(part.args[-1]) in ("2", "2.0"))
    )


_CALLS = (
    *ALGEBRA,
    *TOTALS,
    *BORDERS,
    *LONG_FILTERS,
    Call(
        "rows of an embedding are written one by one, and then added up",
        'nn.EmbeddingBag(n, width, mode="sum" or "mean"), nn.functional.embedding_bag: no tensor with all rows',
        r"sum|mean",
        _is_bag,
        0.5,
        "embedding",
    ),
    Call(
        "overlapping windows are reduced one by one: each element is read as often as a window is wide",
        "torch.cumsum and a difference, or nn.functional.avg_pool1d, max_pool1d",
        "sum|mean|amax|amin",
        _is_of_windows,
        0.6,
    ),
    Call(
        "all windows of images are written side by side, and then reduced to one number each",
        "nn.functional.max_pool2d (of -x for the smallest) or avg_pool2d, which reads each window where it lies",
        "sum|mean|amax|amin|max|min",
        _is_of_patches,
        0.85,
        "im2col",
    ),
    Call(
        "outer products of all rows are written, and then added up",
        "one product adds them up as it goes: x.mT @ y, or einsum without the index that is added up",
        "sum|mean",
        _is_of_outers,
        0.9,
        "bmm|matmul|einsum",
    ),
    Call(
        "single elements are gathered from all rows of a matrix: 32 bytes move for each",
        "store it the other way around, table.T.contiguous(), once: table[index] reads whole rows",
        "index|index_select|contiguous",
        _is_across_rows,
        0.7,
    ),
    Call(
        "only the place of the largest value is used, which is the same without this computation",
        "take argmax of what goes in: softmax, sigmoid, log and square roots keep the order",
        "softmax|log_softmax|sigmoid|log|sqrt",
        _is_for_order,
        1.0,
    ),
    Call(
        "a sigmoid is computed to compare it with a number",
        "compare what goes in with the number's logit: x > 0 in place of torch.sigmoid(x) > 0.5",
        "sigmoid",
        _is_for_threshold,
        1.0,
    ),
    Call(
        "all numbers are permuted, which is a sort, and only the beginning is used",
        "torch.randint(n, (k,)) draws k of n, where k is far below n and a number may come twice",
        "randperm",
        _is_beginning_of_permutation,
        0.9,
    ),
    Call(
        "a distribution over all classes is written for each row, and multiplied with logarithms of probabilities",
        "nn.functional.cross_entropy(logits, target, label_smoothing=eps): it takes the numbers of the classes",
        "mul|sum|neg",
        _is_of_distribution,
        0.8,
        "full_like|zeros_like|zeros|full|scatter_|scatter",
    ),
    Call(
        "rows are chosen by a product with a matrix of zeros and ones",
        "take them by their numbers: x[order], x.index_select(0, order)",
        "matmul|mm|bmm|einsum",
        _is_permutation,
        0.9,
    ),
    Call(
        "a loop reduces, in each turn, all rows up to that of the turn",
        "torch.cumsum (cummax, logcumsumexp) gives all of them in one pass: x.cumsum(1) / torch.arange(1, n + 1)",
        "sum|mean|amax|amin",
        _is_of_prefix,
        0.9,
    ),
    Call(
        "an order is sorted again, for the rank of each value",
        "write the ranks where the order says: ranks = torch.empty_like(order).scatter_(-1, order, numbers)",
        "argsort",
        _is_order_of_order,
        0.45,
        "argsort",
    ),
    Call(
        "squares of all parameters are added up for the loss, and have gradients of their own",
        "weight_decay=2 * factor of the optimizer, which adds it in its own pass (AdamW decays beside the gradient)",
        "pow|square|mul|sum|add",
        _is_sum_of_squares,
        0.9,
    ),
)
RULE = Rule(
    _find,
    "calls instead of which others need less work, by the program's text",
    (GPU_TIME, OPERATORS, TEXT),
    (),
    "svdvals, eigvalsh, lstsq, EmbeddingBag, cumsum, avg_pool1d, rows, x[order], or jax.random.choice",
    host_time=HostTime.CAUSE,
)
