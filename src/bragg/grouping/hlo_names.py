"""Names that JAX gives to HLO operations: paths through the program and through what JAX made of it.

    jit(loss)/transpose(jvp(block0))/layer/dot_general

says that `dot_general` of the scopes `block0` and `layer` was differentiated (`jvp`) and is part of the backward pass
(`transpose`), all of it in the module of `loss`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from bragg.model.tree import FrameKind

BACKWARD = (FrameKind.STATE, "[backward]")
RECOMPUTE = (FrameKind.STATE, "[recompute]")
BANDED = "[factorization of a banded matrix]"
"""LU and Cholesky factorizations of matrices that are zero except near their diagonal."""
BANDED_FACTOR = "[product with a banded matrix]"
"""Matrix products with a matrix that is zero except near its diagonal."""
BATCHED_COND = "batched_cond"
"""The scope in which `vmap` computes both branches of a `cond`."""
BOTH_BRANCHES = "[both branches]"
"""Operations below it are computed for all elements of a batch, and their result is chosen for some."""
COPIED = "[copied argument]"
"""A copy of an argument whose memory the program was not given; the argument's name follows."""
COMPLEX = "[complex transform of real values]"
"""Fourier transforms that make or take real values, and are complex."""
COSTLY_ORDER = "[costly order of products]"
"""Matrix products that are multiplied with a third matrix, in the order that takes more operations."""
COMPLEX_PRODUCT = "[complex product of real values]"
"""Matrix products of complex numbers of which a factor is real."""
CROPPED = "[cropped afterwards]"
"""Matrix products and convolutions of whose result a third to two thirds are taken."""
DENSE_GRADIENT = "[gradient of a whole table]"
"""Gradients of tables of which few rows were used, and what is computed from these gradients element by element."""
DOUBLE = "[64-bit numbers]"
"""Operations on arrays of 64-bit floating point."""
INDEPENDENT_TURNS = "[independent turns]"
"""Loops whose turns need nothing of each other."""
INTEGERS = "[product of integers]"
"""Matrix products of integers of 32 or 64 bits, for which GPUs have no tensor cores."""
LATE_PRODUCT = "[product of rows looked up]"
"""Matrix products with rows of a table that has fewer rows than are looked up."""
LATE_PROJECTION = "[summed at full width]"
"""Sums over rows looked up, of which a matrix product makes narrower rows afterwards."""
LINEAR_TURNS = "[linear recurrence]"
"""Loops whose state becomes itself times a number plus another one, both known before the loop."""
LOOKED_UP_MATRICES = "[matrices looked up]"
"""Matrix products of each row with a matrix of its own, looked up from few, and these copies."""
LOW_RANK = "[factorization of a diagonal and few columns]"
"""LU and Cholesky factorizations of the sum of a diagonal matrix and a product over few columns."""
WINDOWS = "[overlapping windows]"
"""Gathers that write each element many times, into windows that overlap."""
PROMOTED = "[promoted to 32 bits]"
"""Matrix products in 32 bits of values that were 16 bits until they met an array of 32 bits."""
PROMOTED_DOUBLE = "[promoted to 64 bits]"
"""Operations in 64-bit floating point on values that had fewer bits until they met an array of 64 bits."""
RANKS = "[sort of sorted places]"
"""Sorts of the places that another sort has found."""
SCATTERED = "[columns of a table]"
"""Gathers of columns of an argument, whose elements lie a row apart in memory."""
REPEATED_FACTOR = "[product with repeated rows]"
"""Matrix products with a matrix whose rows were repeated in memory, and what repeats them."""
SAME_TURNS = "[same in each turn]"
"""Long operations of loops that do the same in each turn."""
WITHOUT_STATE = "[apart from the state]"
"""Matrix products of loops that need a turn's inputs, and nothing of the turn before."""
SHIFTED = "[shifted in each turn]"
"""Copies of an array that a loop keeps, moved by some rows in each turn."""
COMPARED_PAIRS = "[comparisons of all pairs]"
"""Sums of what is true, or chosen, by comparisons of all pairs of elements."""
SPLIT_PRODUCT = "[product of a sum]"
"""Matrix products that are added to others with one of their factors."""
SUMMED_PRODUCT = "[product by a sum]"
"""Products of elements that are added up as a matrix product would."""
SUMMED_ROWS = "[sum of a product]"
"""Matrix products of which only sums over rows, or columns, are used."""
SYMMETRIC = "[LU of a symmetric matrix]"
"""LU factorizations of a product of a matrix with itself."""
TRIANGULAR = "[LU of a triangular matrix]"
"""LU factorizations of matrices that are triangular already."""
DIAGONAL = "[product with a diagonal matrix]"
"""Matrix products with a matrix that is zero except on its diagonal."""
OUTER = "[product with an outer product]"
"""Matrix products with a matrix of all products of elements of two others: an outer or a Kronecker product."""
WIDE_FILTER = "[wide filter]"
"""Convolutions of single channels with wide filters, sums and maxima over wide windows."""
PAIRWISE = "[pairwise differences]"
"""Sums of squares of differences of all pairs of rows."""
EVALUATED_BEFORE = "[evaluated before]"
"""Operations that the last turn or call has done, if the arguments that follow are the same at each call."""
SAME_ARGUMENTS = "[from the same arguments]"
"""Operations that depend on the arguments that follow alone, which are the same at each call."""
SAME_CALLS = "same arguments "
"""Attributes of a jitted function begin like this, one for each of its name; the values are of `with_arguments`."""
FORWARD_JACOBIAN = "[jacobian in forward mode]"
"""What computes a Jacobian that has many more inputs than outputs, or a gradient, one input after the other."""
JACOBIAN = "counted_jacobian_"
"""The scope of each Jacobian begins like this; a number follows."""
REVERSE_JACOBIAN = "[jacobian in reverse mode]"
"""The backward pass of a Jacobian that has many more outputs than inputs."""
WHOLE_HESSIAN = "[whole hessian]"
"""Derivatives of a gradient for all inputs, where nothing solves with them."""
WHOLE_JACOBIAN = "[whole jacobian]"
"""What computes a Jacobian that is only multiplied by vectors."""
UNTIL_LAST = "[until the last has ended]"
"""Loops under `vmap`, which compute all elements of a batch until the last one has ended."""
ZEROS_AND_ONES = "[product with zeros and ones]"
"""Matrix products with rows that are one-hot, a triangle and the like."""
PART_OF_SHUFFLE = "[shuffled for a part]"
"""Random orders of many rows of which few are taken."""
TO_LIMIT = "[until a tolerance or a limit]"
"""Loops that end by a tolerance below the precision of the numbers, or after as many turns as follow."""
MOSTLY_UNUSED = "[mostly unused]"
"""Operations of whose result a small part is taken."""
VECTORS_UNUSED = "[unused vectors]"
"""Singular value decompositions of which only the values are used."""
CONSTANT = "[constant]"
"""Operations that depend on no argument."""
CALLS = ("jit(", "pmap(")
"""Calls of functions that JAX compiled begin like one of these."""
COMPILE = "[compile] "
"""Compilations of a module begin like this."""
MADE_AT = "made at "
"""Attributes of a jitted function begin like this, one for each line of the program that makes one of its name."""
VARIES = "static argument "
"""Attributes of a jitted function begin like this, one for each static argument, or field, that had several values."""
COMPILED = "compiled program "
"""Attributes of a compilation begin like this, one for each program of its name; the values tell inputs apart."""
CAPTURED = "constants of program "
"""Attributes of a compilation begin like this, one for each program with large constants: bytes, file and line."""
CALLBACK = "[callback] "
"""Functions of the program that a compiled one calls begin like this."""
AUTOTUNE = "autotune"
"""Candidates of XLA's kernels run below it."""
CONTROL = frozenset({"while", "cond"})
"""Primitives that run others."""

PathFrame = tuple[FrameKind, str]

# How JAX computes what is in the brackets, not where in the program it is.
_TRANSFORMATIONS = ("jvp", "transpose", "vmap", "remat", "checkpoint", "custom_jvp", "custom_vjp", "shard_map")
_COMPILED_BY = ("jit", "pjit", "pmap", "xmap")
# Calls that JAX makes around parts of the program.
_WRAPPERS = frozenset(
    {"closed_call", "core_call", "eval_jaxpr", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
    | {"checkpoint", BATCHED_COND}
)
_MAIN = "jit(main)"  # JAX before 0.7 has it below every module.
_JOINED = re.compile(rf";(?=(?:{'|'.join(_COMPILED_BY)})\()")
# JAX before 0.5 says with what a primitive is called: "reduce_sum[axes=(0, 1)]".
_PARAMETERS = re.compile(r"\[\w+=.*\]$", re.DOTALL)


@lru_cache(maxsize=1 << 16)  # As many operations as the largest programs have.
def path_of_name(op_name: str, *, is_whole: bool = True) -> tuple[PathFrame, ...]:
    """The frames that a name stands for, below its module: scopes, control flow, `[backward]` and the primitive.

    Args:
        op_name: `op_name` of the metadata of an HLO operation. Of several, joined by `;`, the first one counts.
        is_whole: It ends with a primitive; else it is what names of fused operations have in common.
    """
    segments = [_PARAMETERS.sub("", segment) for segment in _split(_first(op_name))]
    primitive = segments.pop() if is_whole and segments and _is_primitive(segments[-1]) else ""
    reader = _Reader(module=segments[0] if segments else "")
    for segment in segments:
        reader.read(segment)
    return reader.path(primitive)


def with_arguments(state: str, names: Iterable[str]) -> str:
    """A state that holds if arguments of these names are the same at each call."""
    return " | ".join((state, *sorted(names)))


def arguments_of(state: str) -> frozenset[str]:
    """The names in a text of `with_arguments`."""
    return frozenset(state.split(" | ")[1:])


def symbol_of(op: str) -> str:
    """An operation's name as that of the kernel that is compiled from it, which has no dots."""
    return op.replace(".", "_").replace("-", "_")


def _first(op_name: str) -> str:
    """The first one of joined names: those of operations begin with calls, and scopes may have the mark, too."""
    first = _JOINED.split(op_name, 1)[0]
    return first if "/" in first else first.partition(";")[0]


def _is_primitive(segment: str) -> bool:
    return _called(segment, _COMPILED_BY + _TRANSFORMATIONS) is None and segment not in _WRAPPERS | {"body"}


class _Reader:
    """Collects what the segments of one name say."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._path: list[PathFrame] = []
        self._phases: list[PathFrame] = []

    def read(self, segment: str, *, is_inside: bool = False) -> None:
        """Read one segment, or a part of one that stands in the brackets of a transformation: a scope."""
        called = _called(segment, _TRANSFORMATIONS)
        if called is not None:
            function, inside = called
            self._phases += [BACKWARD] if function == "transpose" else []
            for part in _split(inside):
                self.read(part, is_inside=True)
        elif segment == "rematted_computation":
            self._phases.append(RECOMPUTE)
        elif segment not in _WRAPPERS and not segment.startswith(JACOBIAN) and segment not in (self._module, _MAIN):
            self._add(segment, is_inside)

    def _add(self, segment: str, is_inside: bool) -> None:
        called = _called(segment, _COMPILED_BY)
        is_control = not is_inside and (segment in CONTROL or segment.startswith("branch_"))
        if segment != "body" or not self._path or self._path[-1] != (FrameKind.OPERATOR, "while"):
            self._path.append((FrameKind.OPERATOR if is_control else FrameKind.SCOPE, called[1] if called else segment))

    def path(self, primitive: str) -> tuple[PathFrame, ...]:
        """All that was read, and the primitive; control flow stands above the phase, as it does for what it runs."""
        control = [(FrameKind.OPERATOR, primitive)] if primitive in CONTROL else []
        last = [(FrameKind.OPERATOR, primitive)] if primitive and not control else []
        return (*self._path, *control, *self._phases, *last)


def _called(segment: str, functions: tuple[str, ...]) -> tuple[str, str] | None:
    """The function of `function(inside)`, if it is one of these, and what is inside."""
    function, bracket, inside = segment.partition("(")
    return (function, inside[:-1]) if bracket and inside.endswith(")") and function in functions else None


def _split(name: str) -> Iterator[str]:
    """Parts between slashes that stand in no brackets."""
    depth = begin = 0
    for position, character in enumerate(name + "/"):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth = max(0, depth - 1)
        elif character == "/" and depth == 0:
            if position > begin:
                yield name[begin:position]
            begin = position + 1
    if depth:  # A bracket of a scope's own name is open: slashes may stand inside of it.
        yield from filter(None, name[begin:].split("/"))
