from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bragg.analyze import engine
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import WAITS_A_STEP
from bragg.analyze.causes.work_finding import SHARE_OF_GPU
from bragg.analyze.engine import Rule, analysis, findings, ranked
from bragg.model import Confidence, Finding, Gain, Metric, MetricKind, Profile, Quantity, Severity
from bragg.registry import RULES, RUN_RULES, STEP_RULES, Registry
from tests.support.profiles import profile_from_text
from tests.support.stepped import stepped
from tests.support.traces import trace_from_text


def texts(profile: Profile) -> list[str]:
    return [finding.text for finding in findings(Evidence(profile))]


def test_every_rule_can_be_loaded() -> None:
    assert all(isinstance(rule, Rule) for rule in RULES.values())


def test_rules_of_views_are_rules_of_the_analysis_too() -> None:
    assert dict(RULES) == {**RULES, **RUN_RULES, **STEP_RULES}


def test_a_view_imports_neither_other_rules_nor_compiled_facts() -> None:
    code = """
import sys
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import findings
from tests.support.profiles import profile_from_text
assert findings(Evidence(profile_from_text("root\\n  a 1us"))) == []
print(*(name for name in sys.modules if name.startswith(("bragg.analyze.rules.", "bragg.code."))))
"""
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(ended.stdout.split()) == {
        "bragg.analyze.rules.compiling",
        "bragg.analyze.rules.compiling.jax_recompilation",
        "bragg.analyze.rules.compiling.xla_autotuning",
        "bragg.code.python_nodes",
    }


def test_what_a_check_added_to_the_profile_is_said_unless_rules_are_named() -> None:
    found = Finding("out-of-bounds", Severity.ERROR, "load outside of x")
    evidence = Evidence(replace(profile_from_text("root\n  a 1us"), carried=[found]))
    assert analysis(evidence).findings == [found]
    assert analysis(evidence, ["autotuning"]).findings == []


def test_times_without_counts_are_judged_too() -> None:
    profile = profile_from_text("root\n  step host=3ms\n    kernel:matmul 2ms")
    metrics = {name: metric for name, metric in profile.metrics.items() if name != "gpu_count"}
    assert {"gpu_time", "host_time"} <= set(metrics)
    judged = analysis(Evidence(replace(profile, metrics=metrics)))
    assert judged.skipped["kernel-recompilation"].what == "counts of GPU work"


@pytest.mark.parametrize(("kernel", "is_judged"), [("gemm", True), ("softmax<BLOCK=64 w4 s3>", False)])
def test_rules_about_triton_kernels_need_the_code_of_those_that_ran(kernel: str, is_judged: bool) -> None:
    judged = analysis(Evidence(profile_from_text(f"root\n  {kernel} 5us @0")), ["narrow-access"])
    assert (judged.fine == ["narrow-access"]) is is_judged
    assert ("narrow-access" in judged.skipped) is not is_judged


@pytest.mark.parametrize(("has_slices", "option"), [(False, "--data trace"), (True, "")])
def test_a_timeline_that_was_recorded_is_not_asked_for(has_slices: bool, option: str) -> None:
    profile = trace_from_text("thread 1\n  0-50 step") if has_slices else profile_from_text("root\n  main host=3ms")
    (need,) = analysis(Evidence(profile), ["output-in-steps"]).skipped.values()
    assert need.option == option


def test_a_function_that_is_compiled_again_and_again_is_named() -> None:
    profile = profile_from_text("""
root
  f.py:3@main
    jit(f) host=1s hostx40
      [compile] jit_f host=2s hostx9
    [compile] jit_f host=200ms hostx3
    [compile] jit_g host=9s hostx2
""")
    assert texts(profile) == [
        "jit_f was compiled 12 times, 2.2 s: its calls differ in shapes, types or static arguments, "
        "or the program makes a new function each time: keep these and the function the same; "
        "JAX_EXPLAIN_CACHE_MISSES=1 lets JAX tell what differs"
    ]


@pytest.mark.parametrize(
    ("programs", "says", "line", "confidence"),
    [
        (
            {0: 0},
            "jit__f was compiled 6 times, 6 s, the same program again: a new function is made and jitted each time",
            7,
            Confidence.PROVEN,
        ),
        (
            {number: number for number in range(6)},
            "jit__f was compiled 6 times, 6 s, for 6 different shapes or types of its inputs",
            9,
            Confidence.HEURISTIC,
        ),
        (
            dict.fromkeys(range(3), 0),  # of static numbers, of which some are rounded to the same
            "jit__f was compiled 6 times, 6 s, to 3 programs for one shape and type of its inputs: static "
            "arguments, or values that it reads, differ",
            7,
            Confidence.LIKELY,
        ),
        (
            {number: number // 3 for number in range(6)},
            "jit__f was compiled 6 times, 6 s, to 6 programs for 2 different shapes or types of its inputs: static "
            "arguments, or values that it reads, differ",
            7,
            Confidence.LIKELY,
        ),
    ],
)
def test_why_a_function_is_compiled_again_is_what_its_programs_say(
    programs: dict[int, int], says: str, line: int, confidence: Confidence
) -> None:
    profile = profile_from_text("root\n  f.py:9@main\n    jit(<f>)\n      [compile] jit__f host=6s hostx6")
    attributes = {
        "jit(<f>)": {"made at f.py:7": "jit"},
        "[compile] jit__f": {f"compiled program {number}": f"inputs {kind}" for number, kind in programs.items()},
    }
    profile = replace(profile, meta={**profile.meta, "attributes": attributes})
    (finding,) = findings(Evidence(profile))
    assert (finding.message, finding.line, finding.confidence) == (says, line, confidence)
    assert {finding.line, *(each.line for each in finding.places)} == {9, line}


def test_static_arguments_that_are_new_at_each_call_are_named() -> None:
    profile = profile_from_text("root\n  f.py:9@main\n    jit(f)\n      [compile] jit_f host=6s hostx6")
    attributes = {
        "jit(f)": {"made at f.py:7": "jit", "static argument rate": "several values"},
        "[compile] jit_f": {f"compiled program {number}": "inputs 0" for number in range(6)},
    }
    (finding,) = findings(Evidence(replace(profile, meta={**profile.meta, "attributes": attributes})))
    assert finding.message.endswith(": its static argument rate had several values, and each takes a program")
    assert finding.hint.startswith("pass rate as an array: not in static_argnames")


def test_static_objects_are_named_that_are_new_at_each_call_though_the_program_is_the_same() -> None:
    profile = profile_from_text("root\n  f.py:9@main\n    jit(f)\n      [compile] jit_f host=6s hostx6")
    attributes = {
        "jit(f)": {"made at f.py:7": "jit", "static argument physics": "several values"},
        "[compile] jit_f": {"compiled program 0": "inputs 0"},
    }
    (finding,) = findings(Evidence(replace(profile, meta={**profile.meta, "attributes": attributes})))
    assert finding.message.endswith(", the same program again: for static values that are not equal, of physics")
    assert "with __eq__ and __hash__" in finding.hint
    assert (finding.line, finding.confidence) == (7, Confidence.LIKELY)


def test_a_line_that_clears_what_was_compiled_is_named() -> None:
    profile = profile_from_text("root\n  f.py:9@main\n    jit(f)\n      [compile] jit_f host=6s hostx6")
    attributes = {"jit(f)": {"made at f.py:7": "jit"}, "[compile] jit_f": {"compiled program 0": "inputs 0"}}
    sources = {"f.py": "import jax\n\ndef log():\n    jax.clear_caches()\n"}
    profile = replace(profile, meta={**profile.meta, "attributes": attributes}, sources=sources)
    (finding,) = findings(Evidence(profile))
    assert finding.message.endswith(": jax.clear_caches() throws away what was traced and compiled")
    assert (finding.line, finding.confidence) == (4, Confidence.LIKELY)


def test_static_fields_are_named_where_the_program_says_that_they_are() -> None:
    profile = profile_from_text("root\n  f.py:9@main\n    jit(f)\n      [compile] jit_f host=6s hostx6")
    attributes = {
        "jit(f)": {"made at f.py:7": "jit", "static argument state.tau": "several values"},
        "[compile] jit_f": {f"compiled program {number}": "inputs 0" for number in range(6)},
    }
    text = "class State:\n    key: Array\n    tau: float = field(pytree_node=False, default=1.0)\n"
    profile = replace(profile, meta={**profile.meta, "attributes": attributes}, sources={"f.py": text})
    (finding,) = findings(Evidence(profile))
    assert finding.message.endswith(": its static field state.tau had several values, and each takes a program")
    assert finding.hint.startswith("pass state.tau as an array: not with pytree_node=False")
    assert finding.line == 3
    assert {each.line for each in finding.places} == {7, 9}


@pytest.mark.parametrize(("count", "is_once"), [(20, False), (9, True)], ids=["each step", "fewer than half"])
def test_compilations_in_each_step_are_saved_in_each_step(count: int, is_once: bool) -> None:
    called = "f.py:9@main > jit(f)#operator"
    steps = f"host 0-91 {called} ->1\nhost 0-90 {called} > [compile] jit_f\ngpu 92-99 {called} > gemm#kernel <-1"
    profile = stepped(steps, 100)
    names = profile.tree.frames.name
    own = np.array([count if names[frame].startswith("[compile]") else 0 for frame in profile.tree.frame])
    metrics = {**profile.metrics, "host_count": Metric("host_count", "1", MetricKind.INCLUSIVE, own)}
    (finding,) = analysis(Evidence(replace(profile, metrics=metrics)), ["recompilation"]).findings
    assert finding.gain is not None
    assert finding.gain.is_once is is_once
    assert finding.gain.share == pytest.approx(0.9 * (1 - 1 / count), abs=0.05)  # all but the first


@pytest.mark.parametrize(("compilations", "is_again"), [(3, False), (4, True)])
def test_functions_of_one_name_are_no_function_that_is_compiled_again(compilations: int, is_again: bool) -> None:
    profile = profile_from_text(f"root\n  f.py:9@main\n    jit(f)\n      [compile] jit_f host=6s hostx{compilations}")
    attributes = {
        "jit(f)": {f"made at f.py:{line}": "jit" for line in (4, 5, 6)},
        "[compile] jit_f": {f"compiled program {number}": f"inputs {number}" for number in range(compilations)},
    }
    profile = replace(profile, meta={**profile.meta, "attributes": attributes})
    assert bool(findings(Evidence(profile))) is is_again


@pytest.mark.parametrize(
    ("made", "advice"),
    [
        ("jit(f)", ["pad inputs"]),
        ("jit(g)", ["jit the function t", "where sizes vary"]),
        ("", ["pad inputs", "operations on each"]),
    ],
)
def test_operations_that_no_line_of_the_program_jits_belong_into_one_function(made: str, advice: list[str]) -> None:
    profile = profile_from_text("root\n  f.py:9@main\n    jit(f)\n      [compile] jit_f host=6s hostx6")
    attributes = {
        **({made: {"made at f.py:4": "jit"}} if made else {}),
        "[compile] jit_f": {f"compiled program {number}": f"inputs {number}" for number in range(6)},
    }
    (finding,) = findings(Evidence(replace(profile, meta={**profile.meta, "attributes": attributes})))
    assert [part[: len(start)] for part, start in zip(finding.hint.split("; "), advice, strict=True)] == advice


def test_functions_of_one_name_that_are_each_compiled_for_all_shapes_need_padding() -> None:
    profile = profile_from_text("root\n  f.py:9@main\n    jit(loss)\n      [compile] jit_loss host=6s hostx8")
    programs = {f"compiled program {number}": f"inputs {number // 2}" for number in range(8)}
    attributes = {"jit(loss)": {"made at f.py:2": "jit", "made at f.py:5": "jit"}, "[compile] jit_loss": programs}
    (finding,) = findings(Evidence(replace(profile, meta={**profile.meta, "attributes": attributes})))
    assert finding.message == (
        "jit_loss was compiled 8 times, 6 s, for 4 different shapes or types of its inputs of each of 2 functions of "
        "that name"
    )
    assert finding.hint.startswith("pad inputs whose sizes vary")


@pytest.mark.parametrize(
    ("line", "is_jitted"),
    [
        ("x = f(jnp.ones((n, n)))", False),
        ("f = jax.jit(g)", True),
        ("def f(x): return x ** 2", False),
        ("@jax.jit\ndef f(x): return x ** 2", True),
    ],
)
def test_what_jax_jits_itself_at_a_line_of_the_program_is_not_jitted_by_it(line: str, is_jitted: bool) -> None:
    profile = profile_from_text("root\n  f.py:1@main\n    jit(f)\n      [compile] jit_f host=6s hostx5")
    programs = {f"compiled program {number}": "inputs 0" for number in range(5)}
    attributes = {"jit(f)": {"made at f.py:1": "jit"}, "[compile] jit_f": programs}
    profile = replace(profile, meta={**profile.meta, "attributes": attributes}, sources={"f.py": line})
    (finding,) = findings(Evidence(profile))
    assert finding.message.endswith("differ" if is_jitted else "no line of the program jits it")
    assert finding.hint.startswith("pass these as arrays" if is_jitted else "jit the function that calls it")


def test_gpu_time_of_autotuning_is_told_apart() -> None:
    profile = profile_from_text("""
root
  [compile] jit_f
    autotune
      gemm.1
        candidate 750us
  jit_f
    gemm_1 250us
""")
    assert texts(profile) == [
        "75 % of the run's GPU time is XLA's autotuning, which is done once; "
        "without it: bragg view --exclude '^autotune$'"
    ]


def test_programs_that_compile_little_get_no_hint() -> None:
    assert texts(profile_from_text("root\n  jit_f\n    autotuned 1ms\n  [compile] jit_f host=1s hostx2")) == []
    assert texts(profile_from_text("root\n  main host=3ms")) == []


def test_a_finding_names_its_row_and_how_much_it_matters() -> None:
    profile = profile_from_text("root\n  [compile] jit_f host=2s hostx9")
    (finding,) = findings(Evidence(profile))
    assert (finding.rule in RULES, finding.severity) == (True, Severity.WARNING)
    assert finding.hint == "keep these and the function the same; JAX_EXPLAIN_CACHE_MISSES=1 lets JAX tell what differs"


PLUG_IN = """
from bragg.analyze.engine import Rule
from bragg.model import Finding, Severity

def fail(evidence):
    raise KeyError("gpu_time")

FAILING = Rule(fail, "nothing")
WORKING = Rule(lambda evidence: iter([Finding("many-rows", Severity.NOTE, "there are rows")]), "rows")
"""


def test_rules_of_other_packages_that_fail_are_told_and_the_others_judge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "others-1.0.dist-info").mkdir()
    (tmp_path / "others-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    points = "broken = no_such_module:RULE\nfailing = rules_of_others:FAILING\nmany-rows = rules_of_others:WORKING\n"
    (tmp_path / "others-1.0.dist-info/entry_points.txt").write_text(f"[bragg.rules]\n{points}")
    (tmp_path / "rules_of_others.py").write_text(PLUG_IN)
    monkeypatch.syspath_prepend(tmp_path)
    own = {"recompilation": "bragg.analyze.rules.compiling.jax_recompilation:RULE"}
    monkeypatch.setattr(engine, "RULES", Registry("rule", own, group="bragg.rules"))
    found = analysis(Evidence(profile_from_text("root\n  main host=3ms")))
    assert [each.rule for each in found.findings] == ["many-rows"]
    assert {name: need.what for name, need in found.skipped.items()} == {
        "broken": "a working plug-in (ModuleNotFoundError: No module named 'no_such_module')",
        "failing": "a working plug-in (KeyError: 'gpu_time')",
    }
    assert found.fine == ["recompilation"]


def test_a_rule_of_bragg_that_fails_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "RULES", Registry("rule", {"broken": "no_such_module:RULE"}))
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        analysis(Evidence(profile_from_text("root\n  main host=3ms")))


def test_what_saves_more_of_each_step_comes_first() -> None:
    made = [
        Finding("none", Severity.ERROR, "no gain is known"),
        Finding("once", Severity.ERROR, "saved once", gain=Gain(9, 10, is_once=True)),
        Finding("small", Severity.ERROR, "small", gain=Gain(1, 10)),
        Finding("large", Severity.NOTE, "large", gain=Gain(5, 10)),
    ]
    assert [finding.rule for finding in ranked(made)] == ["large", "small", "once", "none"]


@pytest.mark.parametrize(
    ("cause", "share", "first"),
    [
        ("allocator-churn", 3, "allocator-churn"),
        ("allocator-churn", 2, "many-launches"),
        ("spills", 4, "many-launches"),
    ],
    ids=["three eighths", "little", "of a kernel"],
)
def test_what_is_said_of_the_whole_stands_behind_its_causes(cause: str, share: int, first: str) -> None:
    made = [
        Finding("many-launches", Severity.WARNING, "", gain=Gain(8, 10)),
        Finding("other", Severity.WARNING, "", gain=Gain(6, 10)),
        Finding(cause, Severity.WARNING, "", gain=Gain(share, 10)),
    ]
    rules = [finding.rule for finding in ranked(made)]
    assert next(rule for rule in rules if rule != "other") == first


@pytest.mark.parametrize(
    ("cause", "share", "first"),
    [
        ("part-of-product", 3, "part-of-product"),
        ("part-of-product", 2, "full-precision-matmul"),
        ("tf32-products", 4, "full-precision-matmul"),
        ("synchronization", 4, "full-precision-matmul"),
    ],
    ids=["three eighths", "little", "as costly", "of the host"],
)
def test_what_costs_precision_stands_behind_work_that_need_not_be_done(cause: str, share: int, first: str) -> None:
    of_gpu = () if cause == "synchronization" else (Quantity(SHARE_OF_GPU, 0.5, "share"),)
    made = [
        Finding("full-precision-matmul", Severity.WARNING, "", gain=Gain(8, 10)),
        Finding(cause, Severity.WARNING, "", gain=Gain(share, 10), evidence=of_gpu),
    ]
    assert ranked(made)[0].rule == first


@pytest.mark.parametrize(("waits", "first"), [(32, "synchronization"), (2, "many-launches")])
def test_many_waits_in_a_step_stand_before_launches_that_no_graph_can_hold(waits: int, first: str) -> None:
    made = [
        Finding("many-launches", Severity.WARNING, "", gain=Gain(8, 10)),
        Finding("full-precision-matmul", Severity.WARNING, "", gain=Gain(4, 10)),
        Finding("synchronization", Severity.WARNING, "", gain=Gain(1, 10), evidence=(Quantity(WAITS_A_STEP, waits),)),
    ]
    assert ranked(made)[0].rule == first
