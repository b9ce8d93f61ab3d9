"""What loops of JAX compute or copy in each turn though they need not, as their compiled programs tell."""

from __future__ import annotations

from bragg.analyze.causes.thresholds import SHORT_TURN
from bragg.analyze.causes.work_finding import Work
from bragg.analyze.rules.operators.jax.state_rule import state_rule
from bragg.grouping.hlo_names import (
    EVALUATED_BEFORE,
    INDEPENDENT_TURNS,
    SAME_TURNS,
    SHIFTED,
    UNTIL_LAST,
    WITHOUT_STATE,
)
from bragg.model import Confidence

LOOPS = state_rule(
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
REPEATS = state_rule(
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
INDEPENDENT = state_rule(
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
HOISTED = state_rule(
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
HISTORIES = state_rule(
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
INVARIANTS = state_rule(
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
