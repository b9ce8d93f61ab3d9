"""What jitted functions of JAX compute or copy though the program need not, as their compiled programs tell."""

from __future__ import annotations

from bragg.analyze.causes.work_finding import Work
from bragg.analyze.rules.operators.jax.state_rule import state_rule
from bragg.grouping.hlo_names import (
    BOTH_BRANCHES,
    COMPLEX,
    CONSTANT,
    COPIED,
    CROPPED,
    DENSE_GRADIENT,
    FORWARD_JACOBIAN,
    LATE_PROJECTION,
    MOSTLY_UNUSED,
    PART_OF_SHUFFLE,
    RANKS,
    REVERSE_JACOBIAN,
    SAME_ARGUMENTS,
    SCATTERED,
    VECTORS_UNUSED,
    WHOLE_HESSIAN,
    WHOLE_JACOBIAN,
    WIDE_FILTER,
    WINDOWS,
)
from bragg.model import Confidence

BRANCHES = state_rule(
    BOTH_BRANCHES,
    "conditions of JAX of which both branches are computed: under vmap, or by jnp.where",
    Work(
        "both-branches",
        "all branches of a condition are computed, and the result of one is taken (lax.cond or switch under vmap, "
        "jnp.where by one number)",
        "jax.lax.cond instead of jnp.where; under vmap, compute what is costly once, outside of it, or call lax.cond "
        "there, for the whole batch (jnp.any)",
        0.8,
        Confidence.LIKELY,
        with_host=True,
        is_launched=True,
    ),
)
COPIES = state_rule(
    COPIED,
    "arguments that a jitted function copies because they are not donated",
    Work(
        "undonated-argument",
        "a jitted function changes an argument that is not donated, so it copies it first",
        "jax.jit(..., donate_argnums=...) for arguments that the caller replaces by the result",
        1.0,
        Confidence.LIKELY,
        with_host=True,
    ),
)
TRANSFORMS = state_rule(
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
HESSIANS = state_rule(
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
VECTOR_PRODUCTS = state_rule(
    WHOLE_JACOBIAN,
    "whole Jacobians of JAX that are only multiplied by vectors",
    Work(
        "whole-jacobian",
        "a whole Jacobian is computed, and all that is done with it is to multiply it by a vector, or by few",
        "J @ v: jax.jvp(f, (x,), (v,))[1]; v @ J, J.T @ v: pull(v)[0] of _, pull = jax.vjp(f, x); both cost about one "
        "evaluation of f",
        0.9,
        Confidence.LIKELY,
        with_host=True,
        is_launched=True,
    ),
)
JACOBIANS = state_rule(
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
GRADIENTS = state_rule(
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
PARTS = state_rule(
    MOSTLY_UNUSED,
    "operations of JAX of whose result a small part is used",
    Work(
        "part-of-result",
        "at most a quarter of what these operations compute is used",
        "take the part first (h[:, -1] @ w instead of (h @ w)[:, -1]); lax.top_k, jnp.partition, min or max instead of "
        "a sort; of scan the last state instead of all outputs; jax.vmap(jax.grad(f)) for the diagonal of a Jacobian; "
        "jax.experimental.sparse.linalg.lobpcg_standard, power iterations or a randomized SVD for a few vectors or "
        "the largest value",
        0.75,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
CROPS = state_rule(
    CROPPED,
    "matrix products and convolutions of JAX of which about half is used",
    Work(
        "late-crop",
        "products or convolutions are computed as a whole, and then cropped to about half",
        "crop first, with as much around it as the filters reach: f(x[a - r : b + r])[r:-r] instead of f(x)[a:b]",
        0.4,  # at least: at most 0.6 of them are used
        Confidence.LIKELY,
        is_launched=True,
    ),
)
AGGREGATIONS = state_rule(
    LATE_PROJECTION,
    "sums of JAX over rows looked up, which a matrix product makes narrower afterwards",
    Work(
        "late-projection",
        "rows are looked up and added up at their full width, and then multiplied by a matrix of fewer columns",
        "multiply first: segment_sum((h @ w)[source], target) instead of segment_sum(h[source], target) @ w",
        0.5,  # at least: the product has at most half as many columns
        Confidence.HEURISTIC,
        least_share=0.1,
        is_launched=True,
    ),
)
SHUFFLES = state_rule(
    PART_OF_SHUFFLE,
    "random orders of JAX of many rows, of which few are taken",
    Work(
        "part-of-shuffle",
        "many rows are put in a random order, by several sorts, and at most a quarter of them is taken",
        "make the order once for many batches, and pass it as an argument; or draw with replacement: "
        "jax.random.randint(key, (batch,), 0, n)",
        0.95,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
VECTORS = state_rule(
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
CONSTANTS = state_rule(
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
SAME = state_rule(
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
FILTERS = state_rule(
    WIDE_FILTER,
    "convolutions of JAX of single channels with wide filters, and sums and maxima over wide windows",
    Work(
        "wide-filter",
        "wide filters or windows of single channels, of which each element is read for each result",
        "if the filter is an outer product (Gaussian, box, maximum): one dimension after the other; sums: differences "
        "of jnp.cumsum; other filters by Fourier transforms (jax.scipy.signal.fftconvolve)",
        0.7,
        Confidence.HEURISTIC,
        least_share=0.1,
        is_launched=True,
    ),
)
DENSE = state_rule(
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
WINDOWED = state_rule(
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
COLUMNS = state_rule(
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
RANKED = state_rule(
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
