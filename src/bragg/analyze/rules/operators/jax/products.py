"""Products and pairs in jitted functions of JAX that cost less in another way, as their compiled programs tell."""

from __future__ import annotations

from bragg.analyze.causes.work_finding import Work
from bragg.analyze.rules.operators.jax.state_rule import state_rule
from bragg.grouping.hlo_names import (
    BANDED_FACTOR,
    COMPARED_PAIRS,
    COMPLEX_PRODUCT,
    COSTLY_ORDER,
    DIAGONAL,
    INTEGERS,
    LATE_PRODUCT,
    LOOKED_UP_MATRICES,
    OUTER,
    PAIRWISE,
    PROMOTED,
    PROMOTED_DOUBLE,
    REPEATED_FACTOR,
    SPLIT_PRODUCT,
    SUMMED_PRODUCT,
    SUMMED_ROWS,
    ZEROS_AND_ONES,
)
from bragg.model import Confidence

ORDERS = state_rule(
    COSTLY_ORDER,
    "matrix products of JAX in the order that takes more operations",
    Work(
        "costly-product-order",
        "(a @ b) @ c in an order that takes at least twice the operations of a @ (b @ c)",
        "multiply the matrices first whose product is small: a @ (b @ c); jnp.einsum of all three finds the order; "
        "divide rows afterwards",
        0.9,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
MASKS = state_rule(
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
PAIRS = state_rule(
    PAIRWISE,
    "distances of all pairs that JAX adds up difference by difference",
    Work(
        "pairwise-sums",
        "squares of differences of all pairs of rows are added up, without a matrix product",
        "(a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T; if they are weighted, one more product: a**2 @ w.T",
        0.8,
        Confidence.LIKELY,
        least_share=0.15,
        is_launched=True,
    ),
)
WHOLE_NUMBERS = state_rule(
    INTEGERS,
    "matrix products of JAX with integers of 32 or 64 bits",
    Work(
        "integer-product",
        "matrix products of integers of 32 or 64 bits, which tensor cores do not compute",
        "float32 at jax.lax.Precision.HIGHEST, exact for sums below 2**24; for 8 bits jax.lax.dot(x, y, "
        "preferred_element_type=jnp.int32)",
        0.8,
        Confidence.LIKELY,
        is_launched=True,
    ),
)
DIAGONALS = state_rule(
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
BANDS = state_rule(
    BANDED_FACTOR,
    "matrix products of JAX with a banded matrix",
    Work(
        "banded-factor",
        "matrix products with a matrix that is zero except near its diagonal, as those of finite differences are",
        "add up shifted slices instead: jnp.roll(x, 1, 0) - 2 * x + jnp.roll(x, -1, 0), or slices of jnp.pad(x)",
        0.5,  # at least: 512 rows take TF32 at its peak about as long as reading and writing them
        Confidence.LIKELY,
        is_launched=True,
    ),
)
OUTERS = state_rule(
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
COMPLEX_PRODUCTS = state_rule(
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
COMPARED = state_rule(
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
PROMOTIONS = state_rule(
    PROMOTED,
    "matrix products of JAX in 32 bits, because 16-bit values have met an array of 32 bits",
    Work(
        "promoted-products",
        "an array in 32 bits makes what follows 32 bits: matrix products of 16-bit weights, which are converted",
        "cast the array, or the result, to the type of the values: table.astype(x.dtype), (x * table).astype(x.dtype)",
        0.5,  # at least: 16 bits have twice the rate of TF32, and half of the bytes
        Confidence.HEURISTIC,
        is_launched=True,
    ),
)
LATE = state_rule(
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
REPEATED = state_rule(
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
SUMS = state_rule(
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
SPLIT = state_rule(
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
ROWS = state_rule(
    SUMMED_ROWS,
    "matrix products of JAX of which sums over rows alone are used",
    Work(
        "sum-of-product",
        "only sums, or means, over rows or columns of a matrix product are used",
        "sum first, then multiply: x.sum(0) @ w instead of (x @ w).sum(0)",
        0.8,  # what is left is reading the matrix once
        Confidence.LIKELY,
        is_launched=True,
    ),
)
MATRICES = state_rule(
    LOOKED_UP_MATRICES,
    "matrix products of JAX of each row with a matrix of its own",
    Work(
        "matrix-per-row",
        "each row is multiplied with a copy of its own of one of few matrices, which is written and read for it",
        "sort rows by their matrix and multiply each group at once: jax.lax.ragged_dot; of very few matrices, multiply "
        "with all, and choose",
        0.9,  # of one pair, 8 matrices for 4,096 rows: 97 %
        Confidence.LIKELY,
        is_launched=True,
    ),
)
DOUBLES = state_rule(
    PROMOTED_DOUBLE,
    "operations of JAX in 64 bits, because values have met an array of 64 bits",
    Work(
        "promoted-doubles",
        "an array in 64 bits (NumPy's are, where jax_enable_x64 is set) makes what follows 64 bits",
        "cast the array: table.astype(jnp.float32), np.asarray(table, np.float32)",
        0.5,  # at least: half of the bytes
        Confidence.LIKELY,
        least_share=0.05,
        is_launched=True,
    ),
)
