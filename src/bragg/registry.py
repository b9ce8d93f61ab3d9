"""Plug-in tables: a name leads to `module:object`, which is imported at first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from bragg.errors import UsageError

__all__ = [
    "ANALYSES",
    "ANNOTATIONS",
    "BACKENDS",
    "CHECKERS",
    "DATA_FRAMES",
    "FORMATS",
    "REPRESENTATIONS",
    "RULES",
    "RUN_RULES",
    "STEP_RULES",
    "Registry",
    "load",
]


def load(place: str) -> Any:
    """The object at `module:attribute`, or the module itself, imported now."""
    module, _, attribute = place.partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def _have_plugins() -> bool:
    """Whether a package has rows for tables here: all entry points take 25 ms to read, a look at their lists 2 ms."""
    import re
    from pathlib import Path  # which `import bragg` does not need

    groups = re.compile(rb"^\s*\[\s*bragg\.", re.MULTILINE)
    for folder in map(Path, sys.path):
        if folder.is_file():  # an archive
            return True
        for points in folder.glob("*.*-info/entry_points.txt"):
            if groups.search(points.read_bytes()):
                return True
    return False


class Registry(Mapping[str, Any]):
    """A table of plug-ins of one kind; looking one up imports its module.

    Args:
        kind: What the rows are, for messages.
        rows: Name to `module:object`.
        group: Entry points of other packages with more of them; empty: there are none. Names of `rows` win.
        within: The package of rows that begin with a dot.
    """

    def __init__(self, kind: str, rows: Mapping[str, str], group: str = "", within: str = "") -> None:
        self._kind = kind
        self._own = {name: f"{within}{place}" if place[0] == "." else place for name, place in rows.items()}
        self._group = group

    @cached_property
    def _rows(self) -> dict[str, str]:
        if not self._group or not _have_plugins():
            return self._own
        from importlib.metadata import entry_points

        found = {point.name: point.value for point in entry_points(group=self._group)}
        return {**self._own, **{name: place for name, place in found.items() if name not in self._own}}

    def __getitem__(self, name: str) -> Any:
        """The object of a row.

        Raises:
            UsageError: No row has this name.
        """
        if name not in self._rows:
            from difflib import get_close_matches

            near = get_close_matches(name, self._rows, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Choose one of: {', '.join(self._rows)}"
            raise UsageError(f"unknown {self._kind} {name!r}", hint=hint)
        return load(self._rows[name])

    def __contains__(self, name: object) -> bool:
        """Whether there is such a row; its module is not imported."""
        return name in self._rows

    def is_plug_in(self, name: str) -> bool:
        """Whether another package added this row: that it is right, or even there, is not for bragg to say."""
        return name not in self._own

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


# Each object is a `bragg.record.backends.backend.Backend`, in order of preference; the last one is always there.
BACKENDS = Registry(
    "backend",
    {
        "cuda": "bragg.record.backends.cuda:Cuda",
        "cpu": "bragg.record.backends.cpu:Cpu",
    },
)

# Each object is a `bragg.formats.Format`.
FORMATS = Registry(
    "format",
    {
        "bragg": "bragg.formats.bragg:FORMAT",
        "capture": "bragg.formats.capture:FORMAT",
        "hatchet": "bragg.formats.hatchet:FORMAT",
        "hatchet_msgpack": "bragg.formats.hatchet:MSGPACK_FORMAT",
        "chrome_trace": "bragg.formats.proton.traces:FORMAT",
        "chrome": "bragg.formats.chrome.trace:FORMAT",
        "perfetto": "bragg.formats.perfetto.trace:FORMAT",
        "speedscope": "bragg.formats.speedscope.profile:FORMAT",
        "nsys": "bragg.formats.nsys:FORMAT",
        "pprof": "bragg.formats.pprof:FORMAT",
        "collapsed": "bragg.formats.collapsed:FORMAT",
        "sampling": "bragg.formats.sampling:FORMAT",
        "job": "bragg.formats.job.written:FORMAT",
    },
)

# Each object is a `bragg.debug.checkers.Checker`.
CHECKERS = Registry(
    "checker",
    {
        "out-of-bounds": "bragg.debug.checkers.bounds:BOUNDS",
        "data-race": "bragg.debug.checkers.sharing.races:RACES",
        "missing-barrier": "bragg.debug.checkers.sharing.barriers:BARRIERS",
        "uninitialised-read": "bragg.debug.checkers.uninitialised:UNINITIALISED",
        "masked-lanes": "bragg.debug.checkers.again.masked_lanes:MASKED_LANES",
        "unwritten": "bragg.debug.checkers.unwritten:UNWRITTEN_RESULT",
        "broken-promise": "bragg.debug.checkers.promises:PROMISES",
        "integer-overflow": "bragg.debug.checkers.overflow:OVERFLOW",
        "division-by-zero": "bragg.debug.checkers.division:DIVISION",
        "portability": "bragg.debug.checkers.portability:PORTABILITY",
        "stale-memory": "bragg.debug.checkers.stale:STALE",
        "residency": "bragg.debug.checkers.residency:RESIDENCY",
        "missing-wait": "bragg.debug.checkers.waits:WAITS",
        "missing-fence": "bragg.debug.checkers.fences:FENCES",
        "tuned-twice": "bragg.debug.checkers.again.tuning:TUNING",
        "nan-result": "bragg.debug.checkers.nan:NAN_RESULT",
        "nan-origin": "bragg.debug.checkers.nan:NAN_ORIGIN",
        "uncoalesced": "bragg.debug.checkers.coalescing:COALESCING",
        "atomic-order": "bragg.debug.checkers.atomic_order:ATOMIC_ORDER",
        "order-dependence": "bragg.debug.checkers.again.order:ORDER",
        "launch-dependence": "bragg.debug.checkers.again.variation:VARIATION",
        "precision": "bragg.debug.checkers.again.precision:PRECISION",
        "bank-conflict": "bragg.debug.checkers.bank_conflicts:BANK_CONFLICTS",
        "leak": "bragg.debug.checkers.leaks:LEAKS",
    },
)

# Each object makes lines of a `bragg.cli.annotations.outcome.Outcome`: the findings of `bragg check` for another tool.
ANNOTATIONS = Registry(
    "format",
    {
        "sarif": "bragg.cli.annotations.sarif:lines",
        "junit": "bragg.cli.annotations.junit:lines",
        "github": "bragg.cli.annotations.github:lines",
    },
)

# Each object is a `bragg.analyze.engine.Rule`; its name is the `rule` of what it finds. Packages add theirs to `RULES`
# by entry points. Views show what the first two tables find, and need not import the other rules.
_RULES = "bragg.analyze.rules"
_OF_RUNS = {
    "recompilation": ".compiling.jax_recompilation:RULE",
    "autotuning": ".compiling.xla_autotuning:RULE",
}
_OF_STEPS = {
    "step-waits": ".step_waits:RULE",
    "step-rest": ".step_rest:RULE",
}
RUN_RULES = Registry("rule", _OF_RUNS, within=_RULES)
STEP_RULES = Registry("rule", _OF_STEPS, within=_RULES)
RULES = Registry(
    "rule",
    {
        **_OF_RUNS,
        **_OF_STEPS,
        "many-launches": ".host.many_launches:RULE",
        "planning": ".host.planning:RULE",
        "cpu-work": ".host.cpu_work:RULE",
        "data-loading": ".host.data_loading:RULE",
        "synchronization": ".host.synchronization:RULE",
        "pageable-copies": ".copies.staged_copies:RULE",
        "small-copies": ".copies.small_copies:RULE",
        "host-fills": ".copies.host_fills:RULE",
        "full-precision-matmul": ".operators.precision.full_precision:RULE",
        "tf32-products": ".operators.precision.tf32:RULE",
        "double-precision": ".operators.precision.doubles:RULE",
        "indexing-gradient": ".operators.gradients.indexing:RULE",
        "layout-conversions": ".copies.layout:RULE",
        "type-copies": ".copies.casts:RULE",
        "repeated-tensor": ".copies.repetitions:RULE",
        "unfused-elementwise": ".operators.unfused:RULE",
        "unfused-attention": ".operators.sequences.attention:RULE",
        "optimizer-loop": ".operators.optimizer:RULE",
        "zero-grad": ".operators.gradients.zero_grad:RULE",
        "anomaly-mode": ".operators.gradients.anomaly:RULE",
        "bias-before-norm": ".operators.conv_bias:RULE",
        "recomputed-activations": ".operators.gradients.recomputation:RULE",
        "training-mode": ".operators.training_mode:RULE",
        "partial-sort": ".operators.sorts:RULE",
        "fft-lengths": ".operators.fft_lengths:RULE",
        "product-order": ".operators.products.product_order:RULE",
        "diagonal-product": ".operators.products.diagonal_products:RULE",
        "late-product": ".operators.products.late_products:RULE",
        "masked-attention": ".operators.sequences.masked_attention:RULE",
        "part-of-product": ".operators.products.part_of_product:RULE",
        "broadcast-product": ".operators.products.broadcast_products:RULE",
        "whole-derivative": ".operators.gradients.whole_derivatives:RULE",
        "repeated-coalescing": ".operators.repeated.coalescing:RULE",
        "repeated-backward": ".operators.gradients.repeated_backward:RULE",
        "rebuilt-table": ".operators.repeated.tables:RULE",
        "repeated-factorization": ".operators.products.factorizations:RULE",
        "view-gradients": ".operators.gradients.view_gradients:RULE",
        "explicit-inverse": ".operators.products.inverses:RULE",
        "pairwise-differences": ".operators.products.distances:RULE",
        "rebuilt-mask": ".operators.sequences.masks:RULE",
        "one-hot": ".operators.products.one_hot:RULE",
        "loop-invariant": ".operators.repeated.loop_invariants:RULE",
        "late-part": ".operators.sequences.late_parts:RULE",
        "ignored-targets": ".operators.sequences.ignored_targets:RULE",
        "copied-parameters": ".operators.repeated.snapshots:RULE",
        "growing-tensor": ".operators.sequences.growing:RULE",
        "late-repeat": ".operators.products.late_repeats:RULE",
        "known-inputs": ".operators.recurrences:RULE",
        "unread-result": ".operators.unread_results:RULE",
        "whole-prefix": ".operators.sequences.whole_prefixes:RULE",
        "repeated-evaluation": ".operators.repeated.repeated_evaluations:RULE",
        "structured-product": ".operators.products.structured:RULE",
        "switched-off": ".operators.switched_off:RULE",
        "cheaper-operator": ".operators.cheaper_operators:RULE",
        "cheaper-call": ".operators.calls.cheaper_calls:RULE",
        "value-checks": ".operators.value_checks:RULE",
        "pass-per-value": ".operators.repeated.passes_per_value:RULE",
        "late-layer": ".operators.products.late_layers:RULE",
        "unfused-epilogue": ".operators.epilogues:RULE",
        "padded-batch": ".operators.sequences.padding:RULE",
        "same-call": ".operators.repeated.same_calls:RULE",
        "evaluation-in-steps": ".operators.repeated.evaluation_in_steps:RULE",
        "all-experts": ".operators.products.all_experts:RULE",
        "repeated-parametrization": ".operators.repeated.parametrizations:RULE",
        "dense-embedding-gradient": ".operators.gradients.dense_gradients:RULE",
        "fills": ".copies.fills:RULE",
        "device-copies": ".copies.device_copies:RULE",
        "allocator-churn": ".host.allocator:RULE",
        "emptied-cache": ".host.emptied_cache:RULE",
        "torch-recompilation": ".compiling.torch_recompilation:RULE",
        "exposed-communication": ".host.communication:RULE",
        "small-collectives": ".copies.small_collectives:RULE",
        "streams-in-turns": ".host.streams:RULE",
        "exposed-copies": ".copies.exposed_copies:RULE",
        "worker-starts": ".host.worker_starts:RULE",
        "output-in-steps": ".host.output:RULE",
        "unrolled-loop": ".compiling.unrolled:RULE",
        "captured-constants": ".compiling.captured_constants:RULE",
        "kernel-recompilation": ".compiling.kernel_recompilation:RULE",
        "kernel-autotuning": ".compiling.kernel_autotuning:RULE",
        "graph-breaks": ".compiling.graph_breaks:RULE",
        "guards": ".compiling.guards:RULE",
        "host-callbacks": ".host.jax.callbacks:RULE",
        "debug-settings": ".host.debugging:RULE",
        "calls-per-member": ".host.loops.member_loop:RULE",
        "eager-jax": ".host.jax.eager:RULE",
        "short-jitted-calls": ".host.jax.short_jitted:RULE",
        "short-turns": ".operators.jax.loops:TURNS",
        "linear-recurrence": ".operators.jax.loops:LINEAR",
        "unreached-tolerance": ".operators.jax.loops:LIMITS",
        "loop-outputs": ".operators.jax.loops:OUTPUTS",
        "both-branches": ".operators.jax.states:BRANCHES",
        "undonated-argument": ".operators.jax.states:COPIES",
        "complex-transform": ".operators.jax.states:TRANSFORMS",
        "costly-product-order": ".operators.jax.products:ORDERS",
        "until-last": ".operators.jax.turns:LOOPS",
        "zeros-and-ones": ".operators.jax.products:MASKS",
        "pairwise-sums": ".operators.jax.products:PAIRS",
        "repeated-forward": ".operators.jax.repeated_forward:RULE",
        "binary-search": ".operators.jax.binary_search:RULE",
        "example-gradients": ".operators.jax.example_gradients:RULE",
        "whole-hessian": ".operators.jax.states:HESSIANS",
        "whole-jacobian": ".operators.jax.states:VECTOR_PRODUCTS",
        "reverse-jacobian": ".operators.jax.states:JACOBIANS",
        "independent-turns": ".operators.jax.turns:INDEPENDENT",
        "dense-gradient": ".operators.jax.states:DENSE",
        "product-after-lookup": ".operators.jax.products:LATE",
        "overlapping-windows": ".operators.jax.states:WINDOWED",
        "column-lookup": ".operators.jax.states:COLUMNS",
        "product-in-loop": ".operators.jax.turns:HOISTED",
        "shifted-history": ".operators.jax.turns:HISTORIES",
        "compared-pairs": ".operators.jax.products:COMPARED",
        "promoted-products": ".operators.jax.products:PROMOTIONS",
        "promoted-doubles": ".operators.jax.products:DOUBLES",
        "sum-of-product": ".operators.jax.products:ROWS",
        "matrix-per-row": ".operators.jax.products:MATRICES",
        "banded-matrix": ".operators.jax.factorizations:BANDS",
        "low-rank-matrix": ".operators.jax.factorizations:RANKS",
        "triangular-matrix": ".operators.jax.factorizations:TRIANGLES",
        "symmetric-matrix": ".operators.jax.factorizations:SQUARES",
        "sort-of-places": ".operators.jax.states:RANKED",
        "integer-product": ".operators.jax.products:WHOLE_NUMBERS",
        "complex-product": ".operators.jax.products:COMPLEX_PRODUCTS",
        "repeated-rows": ".operators.jax.products:REPEATED",
        "summed-products": ".operators.jax.products:SUMS",
        "split-product": ".operators.jax.products:SPLIT",
        "same-in-each-turn": ".operators.jax.turns:INVARIANTS",
        "diagonal-matrix": ".operators.jax.products:DIAGONALS",
        "banded-factor": ".operators.jax.products:BANDS",
        "outer-product": ".operators.jax.products:OUTERS",
        "wide-filter": ".operators.jax.states:FILTERS",
        "forward-jacobian": ".operators.jax.states:GRADIENTS",
        "part-of-result": ".operators.jax.states:PARTS",
        "late-projection": ".operators.jax.states:AGGREGATIONS",
        "late-crop": ".operators.jax.states:CROPS",
        "part-of-shuffle": ".operators.jax.states:SHUFFLES",
        "unused-vectors": ".operators.jax.states:VECTORS",
        "evaluated-before": ".operators.jax.turns:REPEATS",
        "same-arguments": ".operators.jax.states:SAME",
        "constant-work": ".operators.jax.states:CONSTANTS",
        "host-code": ".host.host_code:RULE",
        "row-loop": ".host.loops.row_loop:RULE",
        "serialization": ".host.serialization:RULE",
        "python-loop": ".host.loops.python_loop:RULE",
        "operator-loop": ".host.loops.operator_loop:RULE",
        "twin-calls": ".host.loops.twin_calls:RULE",
        "small-steps": ".host.small_steps:RULE",
        "unaligned-matmul": ".kernel.library_alignment:RULE",
        "old-library-kernel": ".kernel.library_generation:RULE",
        "narrow-access": ".memory.narrow_access:RULE",
        "uncoalesced-access": ".memory.uncoalesced_access:RULE",
        "register-spills": ".kernel.spills:RULE",
        "dot-without-tensor-cores": ".kernel.dot_precision:RULE",
        "product-by-sum": ".kernel.product_by_sum:RULE",
        "widened-product": ".kernel.widened_product:RULE",
        "small-tiles": ".kernel.small_tiles:RULE",
        "masked-turns": ".kernel.masked_turns:RULE",
        "many-comparisons": ".kernel.comparisons:RULE",
        "kernel-prints": ".kernel.prints:RULE",
        "single-loads": ".kernel.single_loads:RULE",
        "same-work": ".kernel.same_work:RULE",
        "old-tensor-cores": ".kernel.dot_generation:RULE",
        "loop-not-pipelined": ".kernel.pipelining:RULE",
        "double-arithmetic": ".kernel.doubles:RULE",
        "slow-arithmetic": ".kernel.slow_arithmetic:RULE",
        "atomics-on-one-address": ".memory.atomics:RULE",
        "reduction-in-loop": ".kernel.reductions:RULE",
        "bank-conflicts": ".memory.bank_conflicts:RULE",
        "reread-memory": ".memory.rereads:RULE",
        "repeated-loads": ".memory.repeated_loads:RULE",
        "repeated-passes": ".memory.repeated_passes:RULE",
        "repeated-stores": ".memory.repeated_stores:RULE",
        "chained-kernels": ".kernel.chained:RULE",
        "waiting-line": ".kernel.waiting_line:RULE",
        "layout-conversion-in-loop": ".kernel.conversions:RULE",
        "idle-programs": ".kernel.idle_programs:RULE",
        "idle-threads": ".kernel.idle_threads:RULE",
        "idle-barrier": ".kernel.barriers:RULE",
        "large-code": ".kernel.large_code:RULE",
        "too-many-stages": ".kernel.stages:RULE",
        "low-occupancy": ".kernel.occupancy:RULE",
        "few-blocks": ".kernel.few_blocks:RULE",
        "small-blocks": ".kernel.small_blocks:RULE",
        "tail-wave": ".kernel.tail_wave:RULE",
        "waits-for-tiles": ".clocks.tiles:RULE",
        "waits-for-warps": ".clocks.barriers:RULE",
        "tail-of-blocks": ".clocks.tail:RULE",
        "uneven-multiprocessors": ".clocks.balance:RULE",
        "memory-grows": ".memory_growth:RULE",
        "held-clocks": ".held_clocks:RULE",
        "unread-gradients": ".operators.gradients.unread_gradients:RULE",
        "unused-gradients": ".operators.gradients.unused_gradients:RULE",
    },
    group="bragg.rules",
    within=_RULES,
)

# Each object says something of a profile; the model knows no rule.
ANALYSES = Registry(
    "analysis",
    {
        "compiled_kernels": "bragg.analyze.compiled_kernels:CompiledKernels",
        "findings": "bragg.analyze.report:findings_of",
        "rank_summary": "bragg.analyze.ranks.summarize:summarize",
    },
)

# Each object makes a data frame of a profile and the name of a table.
DATA_FRAMES = Registry(
    "data frame",
    {
        "pandas": "bragg.model.dataframe:pandas_frame",
        "polars": "bragg.model.dataframe:polars_frame",
    },
)

# How profiles show themselves in notebooks: each object makes text of a profile.
REPRESENTATIONS = Registry("representation", {"html": "bragg.notebook.frame:frame_of"})
