"""What is said of slow programs and of their repaired twins, recorded on an H100 with the default options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.answer import answer
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import HostTime, analysis
from bragg.analyze.report import answered, finding_json
from bragg.model import Gain
from bragg.model.table import BoolArray
from bragg.registry import RULES
from bragg.views.text.analysis_text import analysis_lines
from bragg.views.text.answer_text import sentences
from bragg.views.text.finding_text import finding_line
from bragg.views.text.style import PLAIN
from bragg.views.text.variants import rows_of_frames
from tests.golden.gains import answer_of as of
from tests.golden.gains import gains, table
from tests.gpu.slow_pairs import place_of

ROOT = Path(__file__).parents[2]
RECORDINGS = Path(__file__).parent / "recordings/pairs"

# The rule that names the defect, and its line; 0: the rule has none.
PAIRS = {
    "allocator": ("allocator-churn", 10),
    "anomalies": ("anomaly-mode", 11),
    "attention": ("unfused-attention", 10),
    "attention_weights": ("unfused-attention", 8),
    "averages": ("operator-loop", 10),
    "bags": ("dense-embedding-gradient", 9),
    "batch_loop": ("row-loop", 10),
    "callbacks": ("host-callbacks", 17),
    "causal_masks": ("rebuilt-mask", 7),
    "checkpoints": ("recomputed-activations", 18),
    "clipping": ("synchronization", 11),
    "conv_bias": ("bias-before-norm", 15),
    "cpu_work": ("cpu-work", 7),
    "cudnn_search": ("planning", 10),
    "distances": ("pairwise-differences", 7),
    "doubles": ("double-precision", 10),
    "embedding": ("dense-embedding-gradient", 10),
    "emptied_cache": ("emptied-cache", 12),
    "every_second": ("uncoalesced-access", 12),
    "exposed_copies": ("exposed-copies", 10),
    "few_workers": ("data-loading", 22),
    "float_convs": ("full-precision-matmul", 10),
    "graph_breaks": ("graph-breaks", 13),
    "growing_cache": ("device-copies", 11),
    "host_code": ("host-code", 15),
    "host_loop": ("host-code", 19),
    "indexing": ("indexing-gradient", 8),
    "inference_layout": ("layout-conversions", 10),
    "inverses": ("explicit-inverse", 8),
    "jax_checkpoints": ("recomputed-activations", 9),
    "jax_dispatch": ("eager-jax", 24),
    "jax_doubles": ("double-precision", 13),
    "jax_inputs": ("pageable-copies", 17),
    "jax_metrics": ("eager-jax", 24),
    "jax_one_hot": ("one-hot", 11),
    "jax_reads": ("synchronization", 18),
    "jax_shapes": ("recompilation", 16),
    "kept_losses": ("memory-grows", 10),
    "launches": ("many-launches", 10),
    "layout": ("layout-conversions", 9),
    "loader": ("data-loading", 24),
    "masked_rows": ("synchronization", 11),
    "met_warps": ("waiting-line", 14),
    "metric_copies": ("synchronization", 15),
    "module_zeros": ("zero-grad", 11),
    "new_functions": ("recompilation", 15),
    "no_grad": ("unused-gradients", 10),
    "odd_sizes": ("unaligned-matmul", 8),
    "one_hot": ("one-hot", 12),
    "one_wave": ("few-blocks", 22),
    "optimizer": ("optimizer-loop", 11),
    "output": ("output-in-steps", 14),
    "own_optimizer": ("optimizer-loop", 17),
    "pageable": ("pageable-copies", 9),
    "planning": ("planning", 11),
    "precision": ("full-precision-matmul", 8),
    "printed_tensors": ("output-in-steps", 11),
    "recompiled": ("torch-recompilation", 6),
    "rereads": ("reread-memory", 36),
    "resized": ("cpu-work", 8),
    "results_down": ("exposed-copies", 13),
    "row_gradients": ("view-gradients", 10),
    "scalar_tensors": ("small-copies", 10),
    "short_rows": ("small-blocks", 20),
    "small_blocks": ("small-blocks", 19),
    "small_collectives": ("small-collectives", 20),
    "small_copies": ("small-copies", 7),
    "sorts": ("partial-sort", 7),
    "specialized": ("kernel-recompilation", 17),
    "static_numbers": ("torch-recompilation", 22),
    "streams": ("streams-in-turns", 27),
    "sync": ("synchronization", 18),
    "timed_steps": ("synchronization", 16),
    "tuned_lengths": ("kernel-autotuning", 19),
    "type_copies": ("type-copies", 10),
    "unfused": ("unfused-elementwise", 9),
    "window": ("device-copies", 9),
    "window_gradients": ("view-gradients", 7),
    "worker_starts": ("worker-starts", 23),
    "zero_grad": ("zero-grad", 11),
    "zeros": ("fills", 8),
}
# Rules whose findings are true of other pairs than their own, or heuristics that name what a program does at all.
OTHERS = {
    "full-precision-matmul",
    "device-copies",
    "autotuning",
    "many-launches",
    "small-steps",
    "short-jitted-calls",
    "tf32-products",
    "narrow-access",
    "old-library-kernel",
}
# Other defects that a program has, too.
ALSO = {
    "anomalies": {"synchronization"},
    "attention_weights": {"type-copies"},  # of gradients that are put together
    "callbacks": {"eager-jax"},  # the callback's own arithmetic
    "conv_bias": {"unfused-elementwise"},
    "cudnn_search": {"layout-conversions", "type-copies"},  # of images in NCHW
    "few_workers": {"exposed-copies", "host-code", "layout-conversions", "pageable-copies"},
    "float_convs": {"layout-conversions"},  # without tensor cores cuDNN has NCHW alone
    "distances": {"unfused-elementwise"},  # of cdist, which gains nothing
    "host_loop": {"rebuilt-table"},  # the rows that its twin takes
    "indexing": {"unfused-elementwise"},
    "cpu_work": {"pageable-copies"},
    "inverses": {"repeated-factorization", "synchronization"},  # each asks whether the matrices were regular
    "jax_inputs": {"exposed-copies"},
    "loader": {"repeated-tensor"},  # of the batch
    "jax_checkpoints": {"recompilation"},  # of what fills the tensors before the steps
    "one_hot": {"type-copies"},  # of the one-hot rows
    "own_optimizer": {"fills", "host-code"},  # zeros that are made again in each step, and thrown away
    "odd_sizes": {"type-copies"},  # of a gradient that is expanded
    "rereads": {"repeated-passes"},  # the reason
    "resized": {"layout-conversions", "pageable-copies"},  # of images in NCHW, that are copied once they are resized
    "results_down": {"synchronization"},
    "row_gradients": {"operator-loop", "row-loop", "unfused-elementwise"},
    "clipping": {"operator-loop"},  # which clips, and which waits
    "scalar_tensors": {"operator-loop"},
    "sync": {"operator-loop"},
    "small_collectives": {"exposed-communication"},  # one rank waits for the other, which is slower
    "small_copies": {"host-fills", "operator-loop"},  # of the batch of its twin
    "streams": {"few-blocks"},  # of each of the kernels that could run beside others
    "window": {"type-copies"},  # of the state that is put in its place
    "window_gradients": {"unfused-elementwise"},
    "worker_starts": {"data-loading", "repeated-tensor"},  # the first batch of each epoch; of the batch
    "zeros": {"operator-loop", "unfused-elementwise"},  # the products of parts
    "output": {"exposed-copies"},
    "pageable": {"exposed-copies"},  # pinned, and still on the stream that computes
}


# Where the defect is not what limits the program, or its gain is not known.
LATER = {
    "clipping",
    "indexing",
    "kept_losses",
    "masked_rows",
    "metric_copies",
    "recompiled",
    "small_collectives",
    "streams",
    "timed_steps",
    "window_gradients",
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_defect_is_named_at_its_line_and_the_repaired_program_is_fine(name: str) -> None:
    rule, line = PAIRS[name]
    slow, fast = of(f"{name}_slow"), of(f"{name}_fast")
    (finding,) = (each for each in slow.analysis.findings if each.rule == rule)
    assert finding.line == line
    assert Path(finding.file).name == (f"{name}_slow.py" if line else "")
    assert [each for each in fast.analysis.findings if each.rule == rule] == []
    others = {each.rule for each in (*slow.analysis.findings, *fast.analysis.findings)} - {rule} - OTHERS
    assert others == ALSO.get(name, set())


class Watched(Evidence):
    """Evidence that knows whether a gain of the host's time was asked for."""

    asked = False

    def host_gain(self, nodes: BoolArray, saved: float = 1.0) -> Gain | None:
        self.asked = True
        return super().host_gain(nodes, saved)


def test_every_rule_that_gains_time_of_the_host_says_what_it_says_of_it() -> None:
    gains = set()
    for name in PAIRS:
        evidence = Watched(formats.load(RECORDINGS / f"h100-{name}_slow.bragg"))
        for rule in RULES:
            evidence.asked = False
            analysis(evidence, [rule])
            gains |= {rule} if evidence.asked else set()
    roles = {rule: RULES[rule].host_time for rule in RULES}
    assert {rule for rule in gains if roles[rule] is HostTime.NOTHING} == set()
    assert {rule for rule in roles if roles[rule] is HostTime.WHOLE} == {
        "many-launches",
        "short-jitted-calls",
        "small-steps",
    }


def test_most_gains_are_near_to_what_was_measured_and_the_docs_say_which() -> None:
    found = gains()
    assert {each.name for each in found} == PAIRS.keys()
    assert sum(each.is_near for each in found) >= 0.8 * len(found)
    assert table(found) in (ROOT / "docs/reference/rules.md").read_text()


@pytest.mark.parametrize("name", sorted(PAIRS.keys() - LATER))
def test_the_defect_is_named_first(name: str) -> None:
    assert of(f"{name}_slow").analysis.findings[0].rule == PAIRS[name][0]


def test_parts_after_a_graph_break_gain_what_the_gpu_waits_for_them() -> None:
    found = {each.rule: each for each in of("graph_breaks_slow").analysis.findings}
    gain = found["graph-breaks"].gain
    assert gain is not None
    assert gain.share == pytest.approx(0.275, abs=0.001)  # 0.38 was measured


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("small_copies_slow", "copies"),
        ("pageable_slow", "copies"),
        ("recompiled_fast", "compilation"),
        ("precision_slow", "the GPU"),
        ("jax_dispatch_slow", "the host"),
        ("loader_slow", "input"),
        ("host_code_slow", "the host"),
        ("jax_shapes_slow", "compilation"),
        ("exposed_copies_slow", "copies"),
        ("recompiled_slow", "compilation"),
        ("specialized_slow", "compilation"),
        ("static_numbers_slow", "compilation"),
    ],
)
def test_what_bounds_a_program_is_named(name: str, by: str) -> None:
    assert of(name).bounds.by == by


def test_what_a_gpu_waits_for_while_a_program_writes_is_output() -> None:
    parts = of("output_slow").bounds.parts
    assert next(part.name for part in parts if not part.is_gpu) == "output"
    assert parts[0].share == pytest.approx(0.837, abs=0.001)


def test_what_threads_of_xla_compile_side_by_side_is_counted_once() -> None:
    slow = formats.load(RECORDINGS / "h100-jax_shapes_slow.bragg")
    (finding,) = (each for each in answered(slow).analysis.findings if each.rule == "recompilation")
    assert finding.message.startswith("jit_step was compiled 12 times, 24 s")  # 187 s of threads
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.91, abs=0.01)  # 11 of 12, of a steady state that compiles


def test_versions_that_no_backend_compiled_came_from_the_disk() -> None:
    compiled = formats.load(RECORDINGS / "h100-specialized_slow.bragg")
    frames = compiled.tree.frames
    files = [file.replace("/triton/backends/", "/triton/others/") for file in frames.file]
    loaded = replace(compiled, tree=replace(compiled.tree, frames=replace(frames, file=files)))
    for profile, verb in ((compiled, "compiled"), (loaded, "loaded from the cache on disk")):
        (finding,) = analysis(Evidence(profile), ["kernel-recompilation"]).findings
        assert finding.message.startswith(f"add was {verb} 40 times, 2.3 s")


def test_an_answer_without_a_timeline_says_that_it_estimates() -> None:
    slow = of("sync_slow")
    lines = analysis_lines(slow, PLAIN, 0.0)
    assert "Counts and gains are estimates from sums over the run; bragg run --data trace measures them" in lines
    assert slow.bounds.is_estimate


def test_a_finding_without_a_line_has_no_place() -> None:
    found = {each.rule: each for each in of("callbacks_fast").analysis.findings}
    assert "(:0)" not in finding_line(found["autotuning"])
    assert place_of(finding_json(found["autotuning"])) == ""
    (sync,) = (each for each in of("sync_slow").analysis.findings if each.rule == "synchronization")
    assert place_of(finding_json(sync)).endswith("sync_slow.py:18)")


def test_a_finding_that_gains_nothing_is_not_listed_whatever_the_least_gain() -> None:
    fast = of("allocator_fast")
    assert "full-precision-matmul" in {each.rule for each in fast.analysis.findings}
    assert "full-precision-matmul" not in {each.rule for each in fast.worth(0.0)}
    lines = analysis_lines(fast, PLAIN, 0.0)
    assert any(line.startswith("Next, once the host keeps up: full-precision-matmul, 86 %") for line in lines)
    assert not any(line.startswith("Found, but a change would save nothing") for line in lines)


def test_a_wait_for_code_before_a_copy_is_not_said_to_be_for_the_copy() -> None:
    profile = formats.load(RECORDINGS / "h100-host_code_slow.bragg")
    found = answer(Evidence(profile), rows_of_frames(profile.tree.frames))
    text = " ".join(sentences(profile, found))
    assert "The GPU waited 82.6 % of the steady state for code before aten::copy_, 2.8 % for aten::mm" in text
    assert "The median step takes the host 11.8 ms" in text
