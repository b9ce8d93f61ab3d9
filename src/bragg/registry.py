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
    """

    def __init__(self, kind: str, rows: Mapping[str, str], group: str = "") -> None:
        self._kind = kind
        self._own = dict(rows)
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
_OF_RUNS = {
    "recompilation": "bragg.analyze.rules.compiling.jax_recompilation:RULE",
    "autotuning": "bragg.analyze.rules.compiling.xla_autotuning:RULE",
}
_OF_STEPS = {
    "step-waits": "bragg.analyze.rules.step_waits:RULE",
    "step-rest": "bragg.analyze.rules.step_rest:RULE",
}
RUN_RULES = Registry("rule", _OF_RUNS)
STEP_RULES = Registry("rule", _OF_STEPS)
RULES = Registry(
    "rule",
    {
        **_OF_RUNS,
        **_OF_STEPS,
        "many-launches": "bragg.analyze.rules.host.many_launches:RULE",
        "planning": "bragg.analyze.rules.host.planning:RULE",
        "cpu-work": "bragg.analyze.rules.host.cpu_work:RULE",
        "data-loading": "bragg.analyze.rules.host.data_loading:RULE",
        "synchronization": "bragg.analyze.rules.host.synchronization:RULE",
        "pageable-copies": "bragg.analyze.rules.copies.staged_copies:RULE",
        "small-copies": "bragg.analyze.rules.copies.small_copies:RULE",
        "host-fills": "bragg.analyze.rules.copies.host_fills:RULE",
        "full-precision-matmul": "bragg.analyze.rules.operators.precision.full_precision:RULE",
        "tf32-products": "bragg.analyze.rules.operators.precision.tf32:RULE",
        "double-precision": "bragg.analyze.rules.operators.precision.doubles:RULE",
        "indexing-gradient": "bragg.analyze.rules.operators.gradients.indexing:RULE",
        "layout-conversions": "bragg.analyze.rules.copies.layout:RULE",
        "type-copies": "bragg.analyze.rules.copies.casts:RULE",
        "repeated-tensor": "bragg.analyze.rules.copies.repetitions:RULE",
        "unfused-elementwise": "bragg.analyze.rules.operators.unfused:RULE",
        "unfused-attention": "bragg.analyze.rules.operators.sequences.attention:RULE",
        "optimizer-loop": "bragg.analyze.rules.operators.optimizer:RULE",
        "zero-grad": "bragg.analyze.rules.operators.gradients.zero_grad:RULE",
        "anomaly-mode": "bragg.analyze.rules.operators.gradients.anomaly:RULE",
        "bias-before-norm": "bragg.analyze.rules.operators.conv_bias:RULE",
        "recomputed-activations": "bragg.analyze.rules.operators.gradients.recomputation:RULE",
        "training-mode": "bragg.analyze.rules.operators.training_mode:RULE",
        "partial-sort": "bragg.analyze.rules.operators.sorts:RULE",
        "fft-lengths": "bragg.analyze.rules.operators.fft_lengths:RULE",
        "product-order": "bragg.analyze.rules.operators.products.product_order:RULE",
        "diagonal-product": "bragg.analyze.rules.operators.products.diagonal_products:RULE",
        "late-product": "bragg.analyze.rules.operators.products.late_products:RULE",
        "masked-attention": "bragg.analyze.rules.operators.sequences.masked_attention:RULE",
        "part-of-product": "bragg.analyze.rules.operators.products.part_of_product:RULE",
        "broadcast-product": "bragg.analyze.rules.operators.products.broadcast_products:RULE",
        "whole-derivative": "bragg.analyze.rules.operators.gradients.whole_derivatives:RULE",
        "repeated-coalescing": "bragg.analyze.rules.operators.repeated.coalescing:RULE",
        "repeated-backward": "bragg.analyze.rules.operators.gradients.repeated_backward:RULE",
        "rebuilt-table": "bragg.analyze.rules.operators.repeated.tables:RULE",
        "repeated-factorization": "bragg.analyze.rules.operators.products.factorizations:RULE",
        "view-gradients": "bragg.analyze.rules.operators.gradients.view_gradients:RULE",
        "explicit-inverse": "bragg.analyze.rules.operators.products.inverses:RULE",
        "pairwise-differences": "bragg.analyze.rules.operators.products.distances:RULE",
        "rebuilt-mask": "bragg.analyze.rules.operators.sequences.masks:RULE",
        "one-hot": "bragg.analyze.rules.operators.products.one_hot:RULE",
        "loop-invariant": "bragg.analyze.rules.operators.repeated.loop_invariants:RULE",
        "late-part": "bragg.analyze.rules.operators.sequences.late_parts:RULE",
        "ignored-targets": "bragg.analyze.rules.operators.sequences.ignored_targets:RULE",
        "copied-parameters": "bragg.analyze.rules.operators.repeated.snapshots:RULE",
        "growing-tensor": "bragg.analyze.rules.operators.sequences.growing:RULE",
        "late-repeat": "bragg.analyze.rules.operators.products.late_repeats:RULE",
        "known-inputs": "bragg.analyze.rules.operators.recurrences:RULE",
        "unread-result": "bragg.analyze.rules.operators.unread_results:RULE",
        "whole-prefix": "bragg.analyze.rules.operators.sequences.whole_prefixes:RULE",
        "repeated-evaluation": "bragg.analyze.rules.operators.repeated.repeated_evaluations:RULE",
        "structured-product": "bragg.analyze.rules.operators.products.structured:RULE",
        "switched-off": "bragg.analyze.rules.operators.switched_off:RULE",
        "cheaper-operator": "bragg.analyze.rules.operators.cheaper_operators:RULE",
        "cheaper-call": "bragg.analyze.rules.operators.calls.cheaper_calls:RULE",
        "value-checks": "bragg.analyze.rules.operators.value_checks:RULE",
        "pass-per-value": "bragg.analyze.rules.operators.repeated.passes_per_value:RULE",
        "late-layer": "bragg.analyze.rules.operators.products.late_layers:RULE",
        "unfused-epilogue": "bragg.analyze.rules.operators.epilogues:RULE",
        "padded-batch": "bragg.analyze.rules.operators.sequences.padding:RULE",
        "same-call": "bragg.analyze.rules.operators.repeated.same_calls:RULE",
        "evaluation-in-steps": "bragg.analyze.rules.operators.repeated.evaluation_in_steps:RULE",
        "all-experts": "bragg.analyze.rules.operators.products.all_experts:RULE",
        "repeated-parametrization": "bragg.analyze.rules.operators.repeated.parametrizations:RULE",
        "dense-embedding-gradient": "bragg.analyze.rules.operators.gradients.dense_gradients:RULE",
        "fills": "bragg.analyze.rules.copies.fills:RULE",
        "device-copies": "bragg.analyze.rules.copies.device_copies:RULE",
        "allocator-churn": "bragg.analyze.rules.host.allocator:RULE",
        "emptied-cache": "bragg.analyze.rules.host.emptied_cache:RULE",
        "torch-recompilation": "bragg.analyze.rules.compiling.torch_recompilation:RULE",
        "exposed-communication": "bragg.analyze.rules.host.communication:RULE",
        "small-collectives": "bragg.analyze.rules.copies.small_collectives:RULE",
        "streams-in-turns": "bragg.analyze.rules.host.streams:RULE",
        "exposed-copies": "bragg.analyze.rules.copies.exposed_copies:RULE",
        "worker-starts": "bragg.analyze.rules.host.worker_starts:RULE",
        "output-in-steps": "bragg.analyze.rules.host.output:RULE",
        "unrolled-loop": "bragg.analyze.rules.compiling.unrolled:RULE",
        "kernel-recompilation": "bragg.analyze.rules.compiling.kernel_recompilation:RULE",
        "kernel-autotuning": "bragg.analyze.rules.compiling.kernel_autotuning:RULE",
        "graph-breaks": "bragg.analyze.rules.compiling.graph_breaks:RULE",
        "guards": "bragg.analyze.rules.compiling.guards:RULE",
        "host-callbacks": "bragg.analyze.rules.host.jax.callbacks:RULE",
        "debug-settings": "bragg.analyze.rules.host.debugging:RULE",
        "calls-per-member": "bragg.analyze.rules.host.loops.member_loop:RULE",
        "eager-jax": "bragg.analyze.rules.host.jax.eager:RULE",
        "short-jitted-calls": "bragg.analyze.rules.host.jax.short_jitted:RULE",
        "short-turns": "bragg.analyze.rules.operators.jax.loops:TURNS",
        "unreached-tolerance": "bragg.analyze.rules.operators.jax.loops:LIMITS",
        "loop-outputs": "bragg.analyze.rules.operators.jax.loops:OUTPUTS",
        "both-branches": "bragg.analyze.rules.operators.jax.states:BRANCHES",
        "undonated-argument": "bragg.analyze.rules.operators.jax.states:COPIES",
        "complex-transform": "bragg.analyze.rules.operators.jax.states:TRANSFORMS",
        "costly-product-order": "bragg.analyze.rules.operators.jax.products:ORDERS",
        "until-last": "bragg.analyze.rules.operators.jax.turns:LOOPS",
        "zeros-and-ones": "bragg.analyze.rules.operators.jax.products:MASKS",
        "pairwise-sums": "bragg.analyze.rules.operators.jax.products:PAIRS",
        "repeated-forward": "bragg.analyze.rules.operators.jax.repeated_forward:RULE",
        "binary-search": "bragg.analyze.rules.operators.jax.binary_search:RULE",
        "example-gradients": "bragg.analyze.rules.operators.jax.example_gradients:RULE",
        "whole-hessian": "bragg.analyze.rules.operators.jax.states:HESSIANS",
        "reverse-jacobian": "bragg.analyze.rules.operators.jax.states:JACOBIANS",
        "independent-turns": "bragg.analyze.rules.operators.jax.turns:INDEPENDENT",
        "dense-gradient": "bragg.analyze.rules.operators.jax.states:DENSE",
        "product-after-lookup": "bragg.analyze.rules.operators.jax.products:LATE",
        "overlapping-windows": "bragg.analyze.rules.operators.jax.states:WINDOWED",
        "column-lookup": "bragg.analyze.rules.operators.jax.states:COLUMNS",
        "product-in-loop": "bragg.analyze.rules.operators.jax.turns:HOISTED",
        "shifted-history": "bragg.analyze.rules.operators.jax.turns:HISTORIES",
        "compared-pairs": "bragg.analyze.rules.operators.jax.products:COMPARED",
        "promoted-products": "bragg.analyze.rules.operators.jax.products:PROMOTIONS",
        "promoted-doubles": "bragg.analyze.rules.operators.jax.products:DOUBLES",
        "sum-of-product": "bragg.analyze.rules.operators.jax.products:ROWS",
        "matrix-per-row": "bragg.analyze.rules.operators.jax.products:MATRICES",
        "banded-matrix": "bragg.analyze.rules.operators.jax.factorizations:BANDS",
        "low-rank-matrix": "bragg.analyze.rules.operators.jax.factorizations:RANKS",
        "triangular-matrix": "bragg.analyze.rules.operators.jax.factorizations:TRIANGLES",
        "symmetric-matrix": "bragg.analyze.rules.operators.jax.factorizations:SQUARES",
        "sort-of-places": "bragg.analyze.rules.operators.jax.states:RANKED",
        "integer-product": "bragg.analyze.rules.operators.jax.products:WHOLE_NUMBERS",
        "complex-product": "bragg.analyze.rules.operators.jax.products:COMPLEX_PRODUCTS",
        "repeated-rows": "bragg.analyze.rules.operators.jax.products:REPEATED",
        "summed-products": "bragg.analyze.rules.operators.jax.products:SUMS",
        "split-product": "bragg.analyze.rules.operators.jax.products:SPLIT",
        "same-in-each-turn": "bragg.analyze.rules.operators.jax.turns:INVARIANTS",
        "diagonal-matrix": "bragg.analyze.rules.operators.jax.products:DIAGONALS",
        "banded-factor": "bragg.analyze.rules.operators.jax.products:BANDS",
        "outer-product": "bragg.analyze.rules.operators.jax.products:OUTERS",
        "wide-filter": "bragg.analyze.rules.operators.jax.states:FILTERS",
        "forward-jacobian": "bragg.analyze.rules.operators.jax.states:GRADIENTS",
        "part-of-result": "bragg.analyze.rules.operators.jax.states:PARTS",
        "part-of-shuffle": "bragg.analyze.rules.operators.jax.states:SHUFFLES",
        "unused-vectors": "bragg.analyze.rules.operators.jax.states:VECTORS",
        "evaluated-before": "bragg.analyze.rules.operators.jax.turns:REPEATS",
        "same-arguments": "bragg.analyze.rules.operators.jax.states:SAME",
        "constant-work": "bragg.analyze.rules.operators.jax.states:CONSTANTS",
        "host-code": "bragg.analyze.rules.host.host_code:RULE",
        "row-loop": "bragg.analyze.rules.host.loops.row_loop:RULE",
        "serialization": "bragg.analyze.rules.host.serialization:RULE",
        "python-loop": "bragg.analyze.rules.host.loops.python_loop:RULE",
        "operator-loop": "bragg.analyze.rules.host.loops.operator_loop:RULE",
        "twin-calls": "bragg.analyze.rules.host.loops.twin_calls:RULE",
        "small-steps": "bragg.analyze.rules.host.small_steps:RULE",
        "unaligned-matmul": "bragg.analyze.rules.kernel.library_alignment:RULE",
        "old-library-kernel": "bragg.analyze.rules.kernel.library_generation:RULE",
        "narrow-access": "bragg.analyze.rules.memory.narrow_access:RULE",
        "uncoalesced-access": "bragg.analyze.rules.memory.uncoalesced_access:RULE",
        "register-spills": "bragg.analyze.rules.kernel.spills:RULE",
        "dot-without-tensor-cores": "bragg.analyze.rules.kernel.dot_precision:RULE",
        "product-by-sum": "bragg.analyze.rules.kernel.product_by_sum:RULE",
        "widened-product": "bragg.analyze.rules.kernel.widened_product:RULE",
        "small-tiles": "bragg.analyze.rules.kernel.small_tiles:RULE",
        "masked-turns": "bragg.analyze.rules.kernel.masked_turns:RULE",
        "kernel-prints": "bragg.analyze.rules.kernel.prints:RULE",
        "single-loads": "bragg.analyze.rules.kernel.single_loads:RULE",
        "same-work": "bragg.analyze.rules.kernel.same_work:RULE",
        "old-tensor-cores": "bragg.analyze.rules.kernel.dot_generation:RULE",
        "loop-not-pipelined": "bragg.analyze.rules.kernel.pipelining:RULE",
        "double-arithmetic": "bragg.analyze.rules.kernel.doubles:RULE",
        "slow-arithmetic": "bragg.analyze.rules.kernel.slow_arithmetic:RULE",
        "atomics-on-one-address": "bragg.analyze.rules.memory.atomics:RULE",
        "reduction-in-loop": "bragg.analyze.rules.kernel.reductions:RULE",
        "bank-conflicts": "bragg.analyze.rules.memory.bank_conflicts:RULE",
        "reread-memory": "bragg.analyze.rules.memory.rereads:RULE",
        "repeated-loads": "bragg.analyze.rules.memory.repeated_loads:RULE",
        "repeated-passes": "bragg.analyze.rules.memory.repeated_passes:RULE",
        "repeated-stores": "bragg.analyze.rules.memory.repeated_stores:RULE",
        "chained-kernels": "bragg.analyze.rules.kernel.chained:RULE",
        "waiting-line": "bragg.analyze.rules.kernel.waiting_line:RULE",
        "layout-conversion-in-loop": "bragg.analyze.rules.kernel.conversions:RULE",
        "idle-programs": "bragg.analyze.rules.kernel.idle_programs:RULE",
        "idle-threads": "bragg.analyze.rules.kernel.idle_threads:RULE",
        "idle-barrier": "bragg.analyze.rules.kernel.barriers:RULE",
        "large-code": "bragg.analyze.rules.kernel.large_code:RULE",
        "too-many-stages": "bragg.analyze.rules.kernel.stages:RULE",
        "low-occupancy": "bragg.analyze.rules.kernel.occupancy:RULE",
        "few-blocks": "bragg.analyze.rules.kernel.few_blocks:RULE",
        "small-blocks": "bragg.analyze.rules.kernel.small_blocks:RULE",
        "tail-wave": "bragg.analyze.rules.kernel.tail_wave:RULE",
        "waits-for-tiles": "bragg.analyze.rules.clocks.tiles:RULE",
        "waits-for-warps": "bragg.analyze.rules.clocks.barriers:RULE",
        "tail-of-blocks": "bragg.analyze.rules.clocks.tail:RULE",
        "uneven-multiprocessors": "bragg.analyze.rules.clocks.balance:RULE",
        "memory-grows": "bragg.analyze.rules.memory_growth:RULE",
        "held-clocks": "bragg.analyze.rules.held_clocks:RULE",
        "unread-gradients": "bragg.analyze.rules.operators.gradients.unread_gradients:RULE",
        "unused-gradients": "bragg.analyze.rules.operators.gradients.unused_gradients:RULE",
    },
    group="bragg.rules",
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
