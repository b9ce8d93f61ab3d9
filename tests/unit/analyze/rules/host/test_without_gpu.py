"""Steps of programs that use no GPU: their gains are shares of the steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.bounds import bounds_of
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis, findings
from bragg.grouping.workers import with_workers
from bragg.model import Confidence, Finding, FrameKind, Metric, MetricKind, Profile
from bragg.model.durations import buckets_of
from bragg.model.host_time import WAIT_TIME
from bragg.registry import STEP_RULES
from bragg.views.text.bounds_text import bounds_sentence
from bragg.views.text.waiting import waiting_lines
from tests.support.profiles import profile_from_text
from tests.support.stepped import stepped

LOADS = "train.py:5@main > enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = LOADS.replace("_SingleProcess", "_MultiProcessing")
STEP = "train.py:9@main > Optimizer.step#{}.step#operator"
IMPORTS = (
    "train.py:1@<module> > <frozen importlib._bootstrap>:1360@_find_and_load > numpy/lib/_npyio_impl.py:1@<module>"
)
AGAIN = "train.py:7@main > aten::linear#operator > [backward]#state > [recompute]#state > aten::mm#operator"
_NPYIO = "/lib/python3.12/site-packages/numpy/lib/_npyio_impl.py"
SAVES = "train.py:11@main > /lib/python3.12/site-packages/torch/serialization.py:900@save"
SAVES_ARRAYS = f"train.py:11@main > {_NPYIO}:700@savez_compressed > {_NPYIO}:750@_savez"
READS = f"train.py:11@Shards.__getitem__ > {_NPYIO}:250@NpzFile.__getitem__"


def rows(count: int, operator: str) -> list[str]:
    """A comprehension over the rows of a tensor: 20 us for each."""
    line = "train.py:7@main"
    taken = f"{line} > /lib/python3.12/site-packages/torch/_tensor.py:1215@Tensor.__iter__ > aten::unbind#operator"
    lines = [f"host 1-2 {taken}"]
    for at in range(20, 20 + 20 * count, 20):
        lines += [f"host {at}-{at + 1} {taken} > aten::select#operator"]
        lines += [f"host {at + 1}-{at + 20} {line} > train.py:7@<listcomp> > {operator}#operator"]
    return lines


def elementwise(count: int) -> list[str]:
    return [f"host {10 * at}-{10 * at + 10} train.py:7@main > aten::mul#operator" for at in range(count)]


def jitted(*names: str) -> list[str]:
    return [f"host {100 * at}-{100 * at + 100} train.py:7@main > jit({name})#operator" for at, name in enumerate(names)]


def waiting(profile: Profile, line: int) -> Profile:
    """With all time of a line spent waiting."""
    is_line = profile.tree.frames.line[profile.tree.frame] == line
    waited = Metric(WAIT_TIME, "ns", MetricKind.INCLUSIVE, np.where(is_line, profile.own("host_time"), 0))
    return replace(profile, metrics={**profile.metrics, WAIT_TIME: waited})


def found(rule: str, *lines: str) -> list[Finding]:
    return analysis(Evidence(recorded(*lines)), [rule]).findings


def recorded(*lines: str) -> Profile:
    profile = stepped("\n".join(lines), 1000)
    calls = np.bincount(profile.slices.node, minlength=len(profile.tree))
    counts = Metric("host_count", "1", MetricKind.EXCLUSIVE, calls)
    meta = {**profile.meta, "regions": {"step of jit(train_step)": {"called_ns": 1}}}
    return replace(profile, meta=meta, metrics={**profile.metrics, counts.name: counts})


def updates(optimizer: str, n_operators: int, operator: str = "aten::mul_") -> list[str]:
    path = STEP.format(optimizer)
    ends = f"host 940-941 {path}"  # the first optimizer of a program ends its steps
    return [ends, *(f"host {500 + 10 * at}-{510 + 10 * at} {path} > {operator}#operator" for at in range(n_operators))]


@pytest.mark.parametrize(
    ("rule", "line", "lines", "share"),
    [
        ("data-loading", 5, [f"host 0-400 {LOADS}"], 0.36),
        ("data-loading", 5, [f"host 0-400 {WORKERS}"], 0.36),
        ("row-loop", 7, rows(16, "aten::mm"), 0.29),
        ("unfused-elementwise", 7, elementwise(40), 0.2),
        ("eager-jax", 7, jitted("train_step", "key", "split", "normal"), 0.27),
        ("output-in-steps", 11, [f"host 0-200 {SAVES}"], 0.18),
        ("output-in-steps", 11, [f"host 0-200 {SAVES_ARRAYS}"], 0.18),
        ("optimizer-loop", 9, updates("AdamW", 40), 0.2),
        ("recomputed-activations", 7, [f"host 0-300 {AGAIN}"], 0.3),
    ],
)
def test_what_a_step_spends_is_gained(rule: str, line: int, lines: list[str], share: float) -> None:
    (finding,) = found(rule, *lines)
    assert (finding.file, finding.line, finding.confidence) == ("train.py", line, Confidence.HEURISTIC)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(share, abs=0.005)
    assert "GPU" not in finding.message
    assert "pinned" not in finding.hint


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ("data-loading", [f"host 0-20 {LOADS}"]),
        ("output-in-steps", [f"host 0-200 {IMPORTS}"]),
        ("output-in-steps", [f"host 0-200 {READS}"]),
        ("output-in-steps", [f"host 0-200 {SAVES.replace('@save', '@load')} > x.py:9@_load"]),
        ("data-loading", [f"host 0-20 {WORKERS}"]),
        ("row-loop", rows(4, "aten::mm")),
        ("unfused-elementwise", elementwise(16)),
        ("eager-jax", jitted("train_step", "key")),
        ("optimizer-loop", updates("RMSprop", 40)),
        ("optimizer-loop", updates("AdamW", 40, "aten::_fused_adamw_")),
        ("optimizer-loop", updates("AdamW", 4)),
    ],
)
def test_what_costs_little_or_has_no_other_way_is_fine(rule: str, lines: list[str]) -> None:
    assert found(rule, *lines) == []


def test_what_the_program_jits_itself_is_no_dispatch_beside_the_step() -> None:
    profile = recorded(*jitted("train_step", "analyse", "key", "split", "normal"))
    program = "import jax\n\n\n@jax.jit\ndef analyse(x):\n    return x\n\n\ndef main(key):\n    jax.random.split(key)\n"
    made = {"jit(analyse)": {"made at train.py:4": ""}, "jit(split)": {"made at train.py:10": ""}}
    told = replace(profile, meta={**profile.meta, "attributes": made}, sources={"train.py": program})
    (finding,) = analysis(Evidence(told), ["eager-jax"]).findings
    assert finding.message.startswith(
        "beside jit(train_step) each step calls 3 more jitted functions (jit(key), jit(normal), jit(split)), 0.3"
    )
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.27, abs=0.005)  # 0.9 of 300 us


@pytest.mark.parametrize("each_us", [100, 300, 310, 500])
def test_an_operation_that_takes_long_is_no_dispatch(each_us: int) -> None:
    calls = [
        *jitted("train_step", "key", "split", "normal"),
        f"host 400-{400 + each_us} train.py:8@main > jit(add)#operator",
    ]
    (finding,) = found("eager-jax", *calls)
    assert ("calls 4 more" in finding.message) == (each_us <= 300)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.27 + (0.0009 * each_us if each_us <= 300 else 0), abs=0.005)


@pytest.mark.parametrize(
    ("calls", "computes_ms", "traces_ms", "waits_ms", "share"),
    [
        (900, 80, 0, 0, 0.72),
        (900, 80, 0, 300, 0.18),
        (900, 80, 800, 0, 0.88),  # a gradient that is traced anew in each turn
        (100, 80, 0, 0, None),
        (900, 800, 0, 0, None),
    ],
)
def test_jax_dispatches_one_operation_after_the_other_where_nothing_is_jitted(
    calls: int, computes_ms: int, traces_ms: int, waits_ms: int, share: float | None
) -> None:
    profile = profile_from_text(f"""root
  train.py:7@main host=20ms
    /x/site-packages/jax/_src/dispatch.py:88@apply_primitive host={traces_ms}ms
      jit(tanh) host={computes_ms}ms hostx{calls}
    train.py:9@read host={waits_ms}ms""")
    told = analysis(Evidence(profile), ["eager-jax"]).findings
    assert [(each.line, each.gain and round(each.gain.share, 2)) for each in told] == ([(7, share)] if share else [])


def test_no_step_waits_longer_than_it_takes() -> None:
    profile = waiting(recorded("host 0-10 train.py:7@main > aten::mm#operator", "host 20-900 train.py:8@main"), 8)
    is_line = profile.tree.frames.line[profile.tree.frame] == 8
    of_a_slow_first_step = {
        name: replace(metric, own=np.where(is_line, 10 * metric.own, metric.own))
        for name, metric in profile.metrics.items()
        if name in ("host_time", WAIT_TIME)
    }
    slow = replace(profile, metrics={**profile.metrics, **of_a_slow_first_step})
    (finding,) = analysis(Evidence(slow), ["host-code"]).findings
    assert finding.message.endswith(", 1 ms a step")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.9)


def test_parts_of_the_host_s_time_add_up_and_name_their_lines() -> None:
    profile = stepped(
        f"host 0-400 {LOADS}\nhost 400-500 train.py:7@main > aten::mm#operator\nhost 500-800 train.py:8@main\n"
        f"host 800-900 {IMPORTS}",
        1000,
    )
    waits = np.where(profile.tree.frames.line[profile.tree.frame] == 8, 2_000_000, 0)  # of 6 ms
    waited = Metric(WAIT_TIME, "ns", MetricKind.INCLUSIVE, waits)
    bounds = bounds_of(Evidence(replace(profile, metrics={**profile.metrics, WAIT_TIME: waited})))
    assert [(part.name, round(part.share, 2), part.at) for part in bounds.parts] == [
        ("input", 0.5, "train.py:5"),
        ("Python and native code", 0.25, "train.py:8"),
        ("operators", 0.13, "train.py:7"),  # with the step of 1 us
        ("waiting", 0.12, "train.py:8"),
    ]
    assert bounds_sentence(bounds) == (
        "Input bounds much of the program, which uses no GPU (19 steps of 1.00 ms): of 16.0 ms on the host after "
        "imports, input takes 50 % (most at train.py:5), Python and native code 25 % (most at train.py:8), "
        "operators 13 % (most at train.py:7), waiting 12 % (most at train.py:8)."
    )


def test_kernels_that_the_host_executes_are_a_part_of_its_time() -> None:
    profile = profile_from_text("root\n  main host=1ms\n    scale #kernel host=3ms")
    assert [(part.name, part.share) for part in bounds_of(Evidence(profile)).parts] == [
        ("interpreted kernels", 0.75),
        ("Python and native code", 0.25),
    ]


def test_threads_of_the_interpreter_that_wait_are_not_the_program_that_waits() -> None:
    profile = profile_from_text("root\n  main host=1ms\n    scale #kernel host=3ms")
    waits = np.where(profile.tree.kind == FrameKind.KERNEL, 2_000_000, 0)
    waited = Metric(WAIT_TIME, "ns", MetricKind.INCLUSIVE, waits)
    profile = replace(profile, metrics={**profile.metrics, WAIT_TIME: waited})
    bounds = bounds_of(Evidence(profile))
    assert [(part.name, part.share) for part in bounds.parts] == [
        ("interpreted kernels", 0.75),
        ("Python and native code", 0.25),
    ]
    assert waiting_lines(profile) == []
    assert "interpreter, which executes kernels here instead of a GPU" in bounds_sentence(bounds)


def test_elements_that_a_loop_reads_are_asked_for_at_once() -> None:
    (finding,) = found("row-loop", *rows(16, "aten::item"))
    assert finding.message.startswith("a loop reads 16 elements of a tensor one by one, 0.3")
    assert finding.hint.startswith("tensor.tolist(), once")


@pytest.mark.parametrize(
    ("waits", "line", "shares"),
    [
        ("train.py:7@main", 7, [0.27]),
        ("train.py:7@main > /lib/python3.12/urllib/request.py:9@urlopen", 9, [0.27]),
        ("train.py:3@main", 3, []),  # before the steps
        ("train.py:7@main > /lib/python3.12/site-packages/jax/array.py:2@__float__", 2, []),  # it computes
    ],
)
def test_a_line_that_waits_in_each_step_is_found(waits: str, line: int, shares: list[float]) -> None:
    profile = recorded("host 0-100 train.py:5@main > aten::mm#operator", f"host 100-400 {waits}")
    findings = analysis(Evidence(waiting(profile, line)), ["host-code"]).findings
    assert [each.gain.share for each in findings if each.gain] == pytest.approx(shares, abs=0.005)


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("loss.block_until_ready()", 0),
        ("total += np.asarray(loss).sum()", 0),
        ("batches.get()", 1),
    ],
)
def test_a_line_that_waits_for_what_jax_computes_is_no_code_of_the_host(text: str, n_found: int) -> None:
    profile = waiting(recorded("host 0-100 train.py:5@main > jit(step)#operator", "host 100-400 train.py:7@main"), 7)
    profile = replace(profile, sources={"train.py": "\n" * 6 + text})
    assert len(analysis(Evidence(profile), ["host-code"]).findings) == n_found


BATCH = "train.py:5@main > train.py:20@get_batch"
MADE_THERE = ["host 100-150 train.py:5@main > train.py:21@get_batch > aten::randint#operator"]
TRAINS = ["host 150-400 train.py:6@main > aten::mm#operator"]


@pytest.mark.parametrize(
    ("lines", "n_samples", "shares"),
    [
        ([*MADE_THERE, *TRAINS], 20, [0.09]),
        ([*MADE_THERE, *TRAINS], 1, []),  # one wait, before the steps
        (MADE_THERE, 20, []),  # of the only function with steps, before they begin
    ],
)
def test_a_batch_is_waited_for_before_operators_that_complete_it(
    lines: list[str], n_samples: int, shares: list[float]
) -> None:
    profile = waiting(recorded(f"host 0-100 {BATCH}", *lines), 20)
    is_line = profile.tree.frames.line[profile.tree.frame] == 20
    samples = Metric("samples", "1", MetricKind.INCLUSIVE, np.where(is_line, n_samples, 0))
    profile = replace(profile, metrics={**profile.metrics, "samples": samples})
    findings = analysis(Evidence(profile), ["host-code"]).findings
    assert [each.gain.share for each in findings if each.gain] == pytest.approx(shares, abs=0.005)


def test_data_loading_is_not_judged_without_a_loader() -> None:
    profile = recorded(*TRAINS)
    judged = analysis(Evidence(profile), ["data-loading"])
    assert (judged.fine, list(judged.skipped)) == ([], ["data-loading"])
    assert analysis(Evidence(recorded(f"host 0-20 {LOADS}")), ["data-loading"]).fine == ["data-loading"]


def test_without_steps_only_a_loader_is_judged_by_all_time_of_the_host() -> None:
    profile = stepped(f"host 0-400 {LOADS}\nhost 400-500 train.py:7@main", 1000, n_steps=1)
    assert list(analysis(Evidence(profile), ["host-code"]).skipped) == ["host-code"]
    (finding,) = analysis(Evidence(profile), ["data-loading"]).findings
    assert finding.message.endswith("the step itself makes its batch, 80 % of the host's time")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.9 * 400 / 501)


def test_the_line_with_most_of_the_work_of_a_loaders_workers_is_named() -> None:
    torch = "/site-packages/torch/utils/data/_utils"
    worker = profile_from_text(
        f"root\n  {torch}/worker.py:374@_worker_loop host=10ms"
        f"\n    {torch}/fetch.py:54@_MapDatasetFetcher.fetch host=2ms"
        "\n      items.py:8@Items.__getitem__ host=6ms\n        /site-packages/numpy/lib.py:9@sort host=1ms"
        "\n      items.py:9@Items.__getitem__ host=1ms"
    )
    profile = with_workers(stepped(f"host 0-400 {WORKERS}", 1000, n_steps=1), [worker])
    (finding,) = analysis(Evidence(profile), ["data-loading"]).findings
    assert finding.message.startswith("the DataLoader's workers (70 % of their work at items.py:8) do not keep up, ")


@pytest.mark.parametrize("is_timed", [False, True])
def test_the_first_batch_of_workers_is_late_once_and_not_in_each_step(*, is_timed: bool) -> None:
    """Of 60 batches the first one waits 3,000 ms for workers to start, and the others 1 ms each."""
    profile = profile_from_text(f"""
root
  train.py:5@main
    {WORKERS.rpartition(" > ")[2]} host=3060ms
  train.py:9@main host=600ms""")
    ends_ns = [10_000_000 * step for step in range(1, 60)]
    kept = {"began_ns": 4_010_000_000, "ends_after_ns": ends_ns, "last_ns": 4_010_000_000 + ends_ns[-1]}
    step = {"count": 59, "total_ns": 590_000_000, "in_steps_ns": 590_000_000, "buckets": {}, "first_calls": kept}
    batches = [3_001_000_000 + 10_000_000 * batch for batch in range(60)]
    kept = {"began_ns": 1_000_000_000, "ends_after_ns": batches, "last_ns": 1_000_000_000 + batches[-1]}
    bucket = str(buckets_of(np.array([1_000_000]))[0])
    data = {"count": 60, "total_ns": 3_060_000_000, "in_steps_ns": 59_000_000, "buckets": {bucket: 59, "420": 1}}
    regions = {"step": step, **({"data": {**data, "first_calls": kept}} if is_timed else {})}
    workers = [{"pid": 7, "started_ns": 1_000_000_000, "stopped_ns": 5_000_000_000}]
    meta = {"started_ns": 1, "stopped_ns": 5_000_000_001, "regions": regions, "workers": workers}
    steady, first = analysis(Evidence(replace(profile, meta=meta)), ["data-loading"]).findings
    assert steady.gain is not None
    assert steady.gain.share == pytest.approx(0.09, abs=0.01)
    assert not steady.gain.is_once
    assert steady.message.endswith("ms a step")
    assert first.gain is not None
    assert first.gain.is_once
    assert first.gain.share == pytest.approx(0.9 * 3 / 5, abs=0.01)
    assert first.message.startswith("the first batch of the DataLoader's workers is 3,000 ms late")


@pytest.mark.parametrize(("first_ms", "each_ms", "n_found"), [(3_000, 1, 0), (10, 10, 1)])
def test_the_first_batch_is_no_part_of_a_usual_step(first_ms: int, each_ms: int, n_found: int) -> None:
    def region(total_ns: int, first_ns: int, each_ns: int) -> dict[str, object]:
        ends = [first_ns + each_ns * call for call in range(60)]
        kept = {"began_ns": 1_000_000_000, "ends_after_ns": ends, "last_ns": 1_000_000_000 + ends[-1]}
        bucket = str(buckets_of(np.array([each_ns]))[0])
        times = {"count": 60, "total_ns": total_ns, "in_steps_ns": total_ns}
        return {**times, "buckets": {bucket: 60}, "first_calls": kept}

    data_ns, rest_ns = (first_ms + 59 * each_ms) * 1_000_000, 60 * 9_000_000
    step = region(data_ns + rest_ns, (first_ms + 9) * 1_000_000, (each_ms + 9) * 1_000_000)
    data = region(data_ns, first_ms * 1_000_000, each_ms * 1_000_000)
    profile = replace(profile_from_text("root\n  a host=1s"), meta={"regions": {"step": step, "data": data}})
    assert len(findings(Evidence(profile), STEP_RULES)) == n_found


def test_a_part_after_a_graph_break_that_is_compiled_to_the_limit_names_the_break_and_its_time() -> None:
    regions = [f"Torch-Compiled Region: f train.py:7 ({{0}}/{at})" for at in range(8)]
    parts = [each.format(1).replace("train.py:7", "train.py:9 after a graph break") for each in regions]
    operators = "".join(f"\n    {each} #operator host=1ms hostx1" for each in (regions[0].format(0), *parts))
    text = f"""
root
  train.py:17@main host=10ms{operators}
    /x/torch/_dynamo/convert_frame.py:9@compile host=900ms"""
    profile = replace(profile_from_text(text), meta={"started_ns": 1, "stopped_ns": 1_000_000_001})
    found = {each.rule: each for each in analysis(Evidence(profile), ["torch-recompilation", "graph-breaks"]).findings}
    again = found["torch-recompilation"]
    assert again.message.endswith("was compiled 8 times, PyTorch's limit: other calls of it run uncompiled")
    assert again.hint.startswith("no graph break before it")
    assert again.gain is not None
    assert (again.gain.is_once, again.gain.share) == (True, pytest.approx(0.9 * 7 / 9, abs=0.01))
    assert "breaks its graph before f train.py:9" in found["graph-breaks"].message


def test_what_a_program_compiles_already_is_not_told_to_be_compiled() -> None:
    region = "host 900-901 train.py:7@main > Torch-Compiled Region: f train.py:7 (0/0)#operator"
    (plain,), (compiles,) = (
        found("unfused-elementwise", *elementwise(40)),
        found("unfused-elementwise", *elementwise(40), region),
    )
    assert plain.hint == "torch.compile fuses them"
    assert compiles.hint.startswith("they run outside of what torch.compile has compiled")
