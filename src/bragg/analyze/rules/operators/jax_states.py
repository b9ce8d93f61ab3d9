"""What jitted functions of JAX compute or copy though the program need not, as their compiled programs tell."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved
from bragg.analyze.causes.jitted_calls import made_at
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.thresholds import MUCH_GPU, SHORT_TURN
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.grouping.hlo_names import (
    BOTH_BRANCHES,
    COMPARED_PAIRS,
    COMPLEX,
    COMPLEX_PRODUCT,
    CONSTANT,
    COPIED,
    COSTLY_ORDER,
    DENSE_GRADIENT,
    DIAGONAL,
    EVALUATED_BEFORE,
    FORWARD_JACOBIAN,
    INDEPENDENT_TURNS,
    LATE_PRODUCT,
    MOSTLY_UNUSED,
    OUTER,
    PAIRWISE,
    RANKS,
    REPEATED_FACTOR,
    REVERSE_JACOBIAN,
    SAME_ARGUMENTS,
    SAME_TURNS,
    SCATTERED,
    SHIFTED,
    SPLIT_PRODUCT,
    SUMMED_PRODUCT,
    UNTIL_LAST,
    VECTORS_UNUSED,
    WHOLE_HESSIAN,
    WIDE_FILTER,
    WINDOWS,
    WITHOUT_STATE,
    ZEROS_AND_ONES,
)
from bragg.model import Confidence, Finding, Place
from bragg.model.table import BoolArray

__all__ = [
    "BRANCHES",
    "COLUMNS",
    "COMPARED",
    "COMPLEX_PRODUCTS",
    "CONSTANTS",
    "COPIES",
    "DENSE",
    "DIAGONALS",
    "FILTERS",
    "GRADIENTS",
    "HESSIANS",
    "HISTORIES",
    "HOISTED",
    "INDEPENDENT",
    "JACOBIANS",
    "LATE",
    "LOOPS",
    "MASKS",
    "ORDERS",
    "OUTERS",
    "PAIRS",
    "PARTS",
    "RANKED",
    "REPEATED",
    "REPEATS",
    "SAME",
    "SPLIT",
    "SUMS",
    "TRANSFORMS",
    "TURNS",
    "VECTORS",
    "WINDOWED",
]


def _rule(state: str, finds: str, work: Work, most_ns: float = math.inf) -> Rule:
    """A rule about all work below a state, whose kernels take at most this long on average."""

    def find(evidence: Evidence) -> Iterator[Finding]:
        states = named(evidence.profile, lambda name: name.startswith(state))
        nodes = below(evidence.profile, states)
        if float(evidence.gpu_ns[nodes].sum()) > most_ns * float(evidence.gpu_count[nodes].sum()):
            return
        for finding in work_findings(evidence, nodes, work):
            yield _at_cause(evidence, finding, states, is_copy=state == COPIED)

    numbers = (MUCH_GPU,) if most_ns == math.inf else (MUCH_GPU, SHORT_TURN)
    return Rule(find, finds, (GPU_TIME,), numbers, work.change, host_time=HostTime.CAUSE)


def _at_cause(evidence: Evidence, finding: Finding, states: BoolArray, *, is_copy: bool) -> Finding:
    """At the line that asks for the work; of copies where the function is jitted, which decides what it is given."""
    tree = evidence.profile.tree
    spent_ns = tree.sum_up(evidence.gpu_ns)
    node = int(np.where(states & (tree.frames.line[tree.frame] > 0), spent_ns, -1).argmax())
    frame = int(tree.frame[node])
    if states[node] and tree.frames.line[frame] > 0:
        finding = moved(finding, Place(tree.frames.file[frame], int(tree.frames.line[frame]), node=finding.node))
    jitted = made_at(evidence, finding.node) if is_copy else None
    return moved(finding, jitted) if jitted else finding


BRANCHES = _rule(
    BOTH_BRANCHES,
    "conditions of JAX under vmap, of which both branches are computed",
    Work(
        "both-branches",
        "all branches of a condition are computed, and the result of one is taken (lax.cond or switch under vmap, "
        "jnp.where by one number)",
        "compute what is costly once, outside of vmap, and choose from it; or call lax.cond outside of vmap, for the "
        "whole batch (jnp.any)",
        0.8,
        Confidence.LIKELY,
        with_host=True,
        is_launched=True,
    ),
)
COPIES = _rule(
    COPIED,
    "arguments that a jitted function copies because they are not donated",
    Work(
        "undonated-argument",
        "a jitted function changes an argument that it was not given for good, and copies it first",
        "jax.jit(..., donate_argnums=...) for arguments that the caller replaces by the result",
        1.0,
        Confidence.LIKELY,
        with_host=True,
    ),
)
TRANSFORMS = _rule(
    COMPLEX,
    "complex Fourier transforms of real values",
    Work(
        "complex-transform",
        "complex Fourier transforms that take real values, or of whose result the real part is used",
        "jnp.fft.rfft and irfft (rfft2, irfft2, rfftn): half the work and memory",
        0.45,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
ORDERS = _rule(
    COSTLY_ORDER,
    "matrix products of JAX in the order that takes more operations",
    Work(
        "costly-product-order",
        "(a @ b) @ c in an order that takes at least twice the operations of a @ (b @ c)",
        "multiply the matrices first whose product is small: a @ (b @ c); jnp.einsum of all three finds the order",
        0.9,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
LOOPS = _rule(
    UNTIL_LAST,
    "while_loop of JAX under vmap, which ends with its last element",
    Work(
        "until-last",
        "while_loop under vmap computes all elements of the batch until the last one has ended",
        "batches of elements that take about as many turns, a bound on the turns, or a loop over the elements that are "
        "left",
        0.5,
        Confidence.HEURISTIC,
        with_host=True,
        least_share=0.2,
        is_launched=True,
    ),
)
MASKS = _rule(
    ZEROS_AND_ONES,
    "matrix products of JAX with zeros and ones",
    Work(
        "zeros-and-ones",
        "matrix products with zeros and ones that are made from numbers of rows (one-hot, a triangle)",
        "look rows up by index (table[ids]); jax.ops.segment_sum, jnp.cumsum",
        0.9,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
PAIRS = _rule(
    PAIRWISE,
    "distances of all pairs that JAX adds up difference by difference",
    Work(
        "pairwise-sums",
        "squares of differences of all pairs of rows are added up, without a matrix product",
        "(a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T",
        0.8,
        Confidence.LIKELY,
        least_share=0.15,
        is_launched=True,
    ),
)
HESSIANS = _rule(
    WHOLE_HESSIAN,
    "whole Hessians of JAX with which nothing is solved",
    Work(
        "whole-hessian",
        "the whole Hessian is computed, one derivative of the gradient for each input",
        "if it is multiplied by vectors: jax.jvp(jax.grad(f), (x,), (v,))[1] takes one",
        0.9,
        Confidence.LIKELY,
        with_host=True,
        is_launched=True,
    ),
)
JACOBIANS = _rule(
    REVERSE_JACOBIAN,
    "Jacobians of JAX in reverse mode with many more outputs than inputs",
    Work(
        "reverse-jacobian",
        "a Jacobian takes a backward pass for each output, of which it has many more than inputs",
        "jax.jacfwd: a forward pass for each input",
        0.7,
        Confidence.LIKELY,
        with_host=True,
        is_launched=True,
    ),
)
GRADIENTS = _rule(
    FORWARD_JACOBIAN,
    "Jacobians of JAX in forward mode with many more inputs than outputs",
    Work(
        "forward-jacobian",
        "a Jacobian takes a forward pass for each input, of which it has many more than outputs",
        "jax.grad of one output, jax.jacrev of a few: a backward pass for each output",
        0.7,
        Confidence.LIKELY,
        with_host=True,
        is_launched=True,
    ),
)
PARTS = _rule(
    MOSTLY_UNUSED,
    "operations of JAX of whose result a small part is used",
    Work(
        "part-of-result",
        "at most a quarter of what these operations compute is used",
        "take the part first (h[:, -1] @ w instead of (h @ w)[:, -1]); lax.top_k, jnp.partition, min or max instead of "
        "a sort; of scan the last state instead of all outputs; jax.vmap(jax.grad(f)) for the diagonal of a Jacobian; "
        "jax.experimental.sparse.linalg.lobpcg_standard, or a randomized SVD, for a few vectors",
        0.75,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
VECTORS = _rule(
    VECTORS_UNUSED,
    "singular value decompositions of JAX whose vectors nobody uses",
    Work(
        "unused-vectors",
        "singular vectors are computed that nobody uses",
        "jnp.linalg.svd(a, compute_uv=False)",
        0.5,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
CONSTANTS = _rule(
    CONSTANT,
    "operations of jitted functions that depend on no argument",
    Work(
        "constant-work",
        "a jitted function computes the same in each call: this work depends on no argument",
        "compute it once before, and pass it as an argument",
        1.0,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
REPEATS = _rule(
    EVALUATED_BEFORE,
    "values of a state that JAX computes again in the next turn or call",
    Work(
        "evaluated-before",
        "each turn or call computes for its state what the last one has computed for it already",
        "keep the value beside the state, as an output and the next input (of scan: in the carry)",
        1.0,
        Confidence.LIKELY,
        with_host=True,
        is_launched=True,
    ),
)
SAME = _rule(
    SAME_ARGUMENTS,
    "work of jitted functions on arguments that are the same at each call",
    Work(
        "same-arguments",
        "a jitted function computes the same in each call: this work depends only on arguments that do not change",
        "compute it once before the steps, in a jitted function of its own, and pass the result",
        1.0,
        Confidence.LIKELY,
        least_share=0.1,
        is_launched=True,
    ),
)
DIAGONALS = _rule(
    DIAGONAL,
    "matrix products of JAX with a diagonal matrix",
    Work(
        "diagonal-matrix",
        "matrix products with a matrix that is zero except on its diagonal",
        "multiply rows or columns: d[:, None] * x instead of jnp.diag(d) @ x, x * d instead of x @ jnp.diag(d)",
        0.9,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
OUTERS = _rule(
    OUTER,
    "matrix products of JAX with an outer or a Kronecker product",
    Work(
        "outer-product",
        "matrix products with all products of elements of two arrays (an outer or a Kronecker product)",
        "multiply by one factor after the other: a * (b @ x) for outer(a, b) @ x; a @ x.reshape(n, m) @ b.T for "
        "kron(a, b) @ x",
        0.9,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
FILTERS = _rule(
    WIDE_FILTER,
    "convolutions of JAX of single channels with wide filters",
    Work(
        "wide-filter",
        "convolutions of single channels with wide filters",
        "if the filter is an outer product (Gaussian, box): one convolution along each dimension; else by Fourier "
        'transforms (jax.scipy.signal.fftconvolve, convolve(method="fft"))',
        0.7,
        Confidence.HEURISTIC,
        least_share=0.1,
        is_launched=True,
    ),
)
COMPLEX_PRODUCTS = _rule(
    COMPLEX_PRODUCT,
    "complex matrix products of JAX with real factors",
    Work(
        "complex-product",
        "matrix products of complex numbers of which a factor is made of real ones",
        "multiply real matrices, the real and the imaginary part as columns of one: at most half of the operations",
        0.5,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
DENSE = _rule(
    DENSE_GRADIENT,
    "gradients of JAX with respect to a whole table",
    Work(
        "dense-gradient",
        "the gradient of a whole table is made, and applied, though few of its rows were looked up",
        "differentiate with respect to the rows (rows = table[ids] before jax.grad), and update these: "
        "table.at[ids].add(-rate * gradient), with the table donated",
        0.9,
        Confidence.LIKELY,
        least_share=0.15,
        is_launched=True,
    ),
)
INDEPENDENT = _rule(
    INDEPENDENT_TURNS,
    "loops of JAX with short kernels whose turns do not need each other",
    Work(
        "independent-turns",
        "a loop of JAX runs short kernels turn by turn, though no turn needs the result of another",
        "jax.vmap over all of them, or more at a time (lax.map with a larger batch_size); sum afterwards",
        0.6,
        Confidence.LIKELY,
        least_share=0.1,
        with_host=True,
        is_launched=True,
    ),
    SHORT_TURN.value,
)
HOISTED = _rule(
    WITHOUT_STATE,
    "short matrix products in loops of JAX that need nothing of the turn before",
    Work(
        "product-in-loop",
        "each turn of a loop multiplies its own inputs by the same matrix, which needs nothing of the turn before",
        "one product before the loop for the inputs of all turns, whose rows scan takes: scan(body, state, xs @ w)",
        0.7,
        Confidence.LIKELY,
        with_host=True,
        is_launched=True,
    ),
    SHORT_TURN.value,
)
HISTORIES = _rule(
    SHIFTED,
    "arrays that loops of JAX move by some rows in each turn",
    Work(
        "shifted-history",
        "each turn of a loop copies a whole array to move it by some rows (jnp.roll, concatenate of all but the first)",
        "write the new row in place of the oldest: history.at[turn % length].set(row), and count from there",
        0.6,
        Confidence.HEURISTIC,
        is_launched=True,
    ),
)
COMPARED = _rule(
    COMPARED_PAIRS,
    "sums of comparisons of all pairs in JAX",
    Work(
        "compared-pairs",
        "elements are compared pair by pair, and what is true, or chosen so, is added up",
        "sort first: jnp.searchsorted counts smaller ones, jnp.argsort gives ranks; jnp.bincount counts equal ones; "
        "jnp.cumsum adds up all before each",
        0.8,
        Confidence.HEURISTIC,
        least_share=0.1,
        is_launched=True,
    ),
)
LATE = _rule(
    LATE_PRODUCT,
    "matrix products of JAX with rows that were looked up several times",
    Work(
        "product-after-lookup",
        "a matrix is multiplied with rows of a table, each as often as it was looked up",
        "multiply the table first, which has fewer rows, and look up rows of the product: (table @ w)[ids]",
        0.7,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
WINDOWED = _rule(
    WINDOWS,
    "windows of JAX that overlap, gathered",
    Work(
        "overlapping-windows",
        "windows that overlap are gathered, each element many times",
        "sums, means: differences of jnp.cumsum, or lax.reduce_window; weighted: jnp.convolve or lax.conv",
        0.8,
        Confidence.LIKELY,
        least_share=0.1,
        is_launched=True,
    ),
)
COLUMNS = _rule(
    SCATTERED,
    "columns of tables that JAX looks up",
    Work(
        "column-lookup",
        "columns of a table are looked up, whose elements lie a row apart: up to 32 B move for each of them",
        "keep the table transposed, so that what is looked up together lies together: table_t[ids] with table_t = "
        "jnp.transpose(table), made once",
        0.6,
        Confidence.HEURISTIC,
        least_share=0.1,
        is_launched=True,
    ),
)
RANKED = _rule(
    RANKS,
    "sorts of JAX of what another sort has found",
    Work(
        "sort-of-places",
        "places that a sort has found are sorted again (argsort of argsort), to know the rank of each element",
        "order = jnp.argsort(x); ranks = jnp.zeros_like(order).at[order].set(jnp.arange(order.size))",
        0.7,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
REPEATED = _rule(
    REPEATED_FACTOR,
    "matrix products of JAX with rows that were repeated",
    Work(
        "repeated-rows",
        "rows are repeated in memory (jnp.repeat, tile, broadcast_to) for a matrix product with them",
        "jnp.einsum with one more dimension on the other side (queries in groups, for keys that they share): no copies",
        0.5,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
SUMS = _rule(
    SUMMED_PRODUCT,
    "products of all pairs that JAX adds up without a matrix product",
    Work(
        "summed-products",
        "products of elements are added up one by one, which is a matrix product without tensor cores",
        'a @ b or jnp.einsum("ij,jk->ik", a, b); the mean of gradients of single examples: the gradient of their mean',
        0.8,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
SPLIT = _rule(
    SPLIT_PRODUCT,
    "matrix products of JAX with one factor, which are added up",
    Work(
        "split-product",
        "matrix products with one factor are added to others: a @ x + a @ y",
        "add first, and multiply once: a @ (x + y); gradients of several losses: jax.grad of their sum",
        0.9,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
TURNS = _rule(
    SAME_TURNS,
    "operations of JAX that are the same in each turn of a loop",
    Work(
        "same-in-each-turn",
        "a loop of JAX computes the same in each turn: this work depends on nothing that changes",
        "compute it once before the loop, and use it in the function of a turn",
        0.9,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
