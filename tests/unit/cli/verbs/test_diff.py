from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bragg import formats
from bragg.model import Finding, Metric, MetricKind, Severity
from bragg.model.finding import Gain
from bragg.views.text.analysis_text import changed_findings, changed_lines
from bragg.views.text.style import Style
from tests.support.profiles import profile_from_text
from tests.support.recordings import RECORDINGS
from tests.support.stepped import stepped
from tests.unit.cli.conftest import Bragg

BEFORE = "root\n  forward\n    matmul 200us x10\n    relu 10us x2\n  backward\n    matmul 100us x5"
AFTER = "root\n  forward\n    matmul 250us x10\n    gelu 10us x4\n  backward\n    matmul 100us x5"


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """The same program before and after, in two formats."""
    before, after = tmp_path / "before.bragg", tmp_path / "after.hatchet"
    formats.export(profile_from_text(BEFORE), "bragg", before)
    formats.export(profile_from_text(AFTER), "hatchet", after)
    return before, after


def test_diff_shows_the_largest_change_first(bragg: Bragg, sides: tuple[Path, Path]) -> None:
    outcome = bragg("diff", *sides)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.stdout.splitlines() == [
        "gpu_time: 310 us before, 360 us after: +50.0 us (+16.1 %)",
        "",
        "change us  relative  before us  after us  count  avg before us  avg after us  name",
        "   +50.00   +25.0 %     200.00    250.00     10          20.00         25.00  forward → matmul",
        "   -10.00      gone      10.00      0.00  2 > 0           5.00                forward → relu",
        "   +10.00       new       0.00     10.00  0 > 4                         2.50  forward → gelu",
    ]


def names_of(outcome: Any) -> list[str]:
    """The last column of the table, without its header."""
    header, *rows = outcome.stdout.splitlines()[2:]
    return [row[header.index("name") :] for row in rows]


def exported(tmp_path: Path, *texts: str) -> list[Path]:
    """Profiles of two texts as files."""
    files = [tmp_path / f"{number}.bragg" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        formats.export(profile_from_text(text), "bragg", file)
    return files


def test_a_chain_of_callers_is_one_row(bragg: Bragg, tmp_path: Path) -> None:
    layers = "layer\n        matmul {}us x1\n        relu {}us x1\n      loss\n        sum {}us x1"
    text = f"root\n  main\n    step\n      {layers}"
    sides = exported(tmp_path, text.format(100, 40, 30), text.format(40, 10, 10))
    assert names_of(bragg("diff", *sides)) == [
        "main → step → layer → matmul",  # 60 of 110
        "main → step → layer → relu",
        "main → step → loss → sum",
    ]


def test_a_caller_that_changed_itself_or_by_many_below_it_is_a_row(bragg: Bragg, tmp_path: Path) -> None:
    text = "root\n  a.py:1@main\n    a.py:2@load host={}ms\n      a.py:3@parse host={}ms"
    own = exported(tmp_path, text.format(8, 4), text.format(5, 1))
    assert names_of(bragg("diff", *own)) == ["main a.py → load a.py", "main a.py → load a.py → parse a.py"]
    text = "root\n  step\n    one {0}us x1\n    two {0}us x1\n    three {0}us x1"
    many = exported(tmp_path, text.format(20), text.format(10))
    assert names_of(bragg("diff", *many)) == ["step", *(f"step → {name}" for name in ("one", "two", "three"))]


def test_long_paths_keep_the_function_of_the_program_and_what_ran(bragg: Bragg, tmp_path: Path) -> None:
    operators = "".join(f"\n{' ' * (6 + 2 * at)}aten::{'x' * 20}{at}" for at in range(6))
    text = "root\n  a.py:1@main\n    a.py:2@score" + operators + "\n" + " " * 18 + "matmul {}us x1"
    sides = exported(tmp_path, text.format(20), text.format(10))
    (name,) = names_of(bragg("diff", *sides))
    assert name == f"… → score a.py → … → aten::{'x' * 20}4 → aten::{'x' * 20}5 → matmul"
    rows = json.loads(bragg("diff", *sides, "--json").stdout)["rows"]
    assert max(len(row["path"]) for row in rows) == 9


def test_a_narrow_terminal_has_no_room_for_averages(
    bragg: Bragg, sides: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = bragg("diff", *sides).stdout.splitlines()
    assert lines[2] == "change us  relative  before us  after us  count  name"
    assert lines[3] == "   +50.00   +25.0 %     200.00    250.00     10  forward → matmul"


def test_growth_beyond_the_limit_is_one_line_and_exit_code_5(bragg: Bragg, sides: tuple[Path, Path]) -> None:
    outcome = bragg("diff", *sides, "--by", "kernel", "--gate", "rows", "--fail-over", "5%", "--floor", "20us")
    assert outcome.exit_code == 5
    assert outcome.stderr.splitlines()[-1] == (
        "error: matmul is over the limit of 5 % and 20us: gpu_time 300 us before, 350 us after: +50.0 us (+16.7 %); "
        "one run each, assumed to vary by up to 7.9 %; 1 more"
    )
    assert outcome.stdout.splitlines()[3].endswith("  matmul")


@pytest.mark.parametrize(
    ("limits", "exit_code"),
    [
        (["5%"], 5),
        (["20%"], 5),
        (["20%", "--floor", "10us"], 0),
        (["5", "--floor", "49.9us"], 5),
        (["5", "--floor", "0.05ms"], 0),
        (["5%", "--floor", "50000"], 0),
    ],
)
def test_limits_have_units(bragg: Bragg, sides: tuple[Path, Path], limits: list[str], exit_code: int) -> None:
    assert bragg("diff", *sides, "--by", "kernel", "--gate", "rows", "--fail-over", *limits).exit_code == exit_code


@pytest.mark.parametrize(
    ("files", "gate", "exit_code", "said"),
    [
        (1, "total=0.3ms", 5, "error: total=0.3ms is exceeded: gpu_time 360 us, at most 300 us"),
        (1, "total=360us", 0, "passed: total=360us: gpu_time 360 us, at most 360 us"),
        (2, "kernel:matmul=1ms", 0, "passed: kernel:matmul=1ms: gpu_time 350 us, at most 1.00 ms"),
        (1, "rows=1ms", 2, "error: --gate: 'rows=1ms' is nothing that can be judged"),
        (1, "total", 2, "error: a comparison needs two sets of files, and after.hatchet is one"),
    ],
)
def test_a_value_may_be_limited_whatever_it_was_before(
    bragg: Bragg, sides: tuple[Path, Path], files: int, gate: str, exit_code: int, said: str
) -> None:
    outcome = bragg("diff", *sides[-files:], "--gate", gate)
    assert (outcome.exit_code, outcome.stderr.splitlines()[0].replace(f"{sides[1].parent}/", "")) == (exit_code, said)
    assert bool(outcome.stdout) == (files == 2)


def test_counts_can_be_limited_too(bragg: Bragg, sides: tuple[Path, Path]) -> None:
    limits = ("--gate", "rows", "--fail-over", "0", "--floor", "3")
    outcome = bragg("diff", *sides, "--by", "kernel", "--metric", "count", *limits)
    assert outcome.stderr.splitlines()[-1] == (
        "error: gelu is over the limit of 0 % and 3: gpu_count 0 before, 4 after: +4 (new)"
    )


@pytest.mark.parametrize(("after", "exit_code"), [("129us", 0), ("129001ns", 5)])
def test_growth_by_just_the_limit_is_allowed(bragg: Bragg, tmp_path: Path, after: str, exit_code: int) -> None:
    files = tmp_path / "before.bragg", tmp_path / "after.bragg"
    for file, time in zip(files, ("100us", after), strict=True):
        formats.export(profile_from_text(f"root\n  k {time}"), "bragg", file)
    assert bragg("diff", *files, "--fail-over", "29%").exit_code == exit_code
    assert bragg("diff", *reversed(files), "--fail-over", "0").exit_code == 0
    assert bragg("diff", *files, "--fail-over", "0%", "--floor", "29us").exit_code == exit_code


def test_floor_is_a_time_where_the_metric_is_one(bragg: Bragg, tmp_path: Path) -> None:
    files = tmp_path / "before.bragg", tmp_path / "after.bragg"
    for file, value in zip(files, (100, 200), strict=True):
        profile = profile_from_text("root\n  k 1us")
        latency = Metric("latency", "us", MetricKind.EXCLUSIVE, np.array([0, value]))
        formats.export(replace(profile, metrics={**profile.metrics, "latency": latency}), "bragg", file)
    limit = ("--metric", "latency", "--gate", "rows", "--fail-over", "5%", "--floor")
    assert [bragg("diff", *files, *limit, floor).exit_code for floor in ("99us", "100", "0.1ms", "99999ns")] == [
        5,
        0,
        0,
        5,
    ]
    outcome = bragg("diff", *files, "--metric", "count", *limit[2:], "20us")
    assert (outcome.exit_code, outcome.stderr) == (
        2,
        "error: gpu_count is not a time, so --floor takes no unit\nhint: For example: --floor 20\n"
    )  # fmt: skip


def test_what_is_inside_a_library_is_one_caller_and_empty_columns_are_left_out(bragg: Bragg, tmp_path: Path) -> None:
    torch = "/l/python3/site-packages/torch"
    before = f"root\n  a.py:1@main\n    {torch}/m.py:1@call\n      {torch}/m.py:2@run\n        b.py:1@step host=2ms"
    after = f"{before[:-3]}3ms\n      {torch}/m.py:9@more host=1ms"
    files = tmp_path / "before.bragg", tmp_path / "after.bragg"
    for file, text in zip(files, (before, after), strict=True):
        formats.export(profile_from_text(text), "bragg", file)
    assert bragg("diff", *files).stdout.splitlines()[2:] == [
        "change ms  relative  before ms  after ms  name",
        "    +2.00  +100.0 %       2.00      4.00  main a.py → [torch]",
        "    +1.00   +50.0 %       2.00      3.00  main a.py → [torch] → step b.py",
    ]
    assert "run m.py → step b.py" in bragg("diff", *files, "--no-fold").stdout


def test_diff_in_json_has_all_rows(bragg: Bragg, sides: tuple[Path, Path]) -> None:
    values = json.loads(bragg("diff", *sides, "--json").stdout)
    assert (values["view"], values["metric"]) == ("diff", {"name": "gpu_time", "unit": "ns"})
    assert values["total"]["change"] == 50_000
    paths = [row["path"] for row in values["rows"]]
    assert paths[:2] == [["forward"], ["forward", "matmul"]]
    assert ["backward", "matmul"] in paths


def test_equal_recordings_have_no_difference(bragg: Bragg, sides: tuple[Path, Path]) -> None:
    outcome = bragg("diff", sides[0], sides[0], "--fail-over", "0%")
    assert outcome.exit_code == 0
    assert outcome.stdout.splitlines()[-1] == "no difference"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--floor", "5us"], "error: --floor needs --fail-over"),
        (["--fail-over", "5x"], "error: --fail-over: '5x' is not a number with a known unit"),
        (["--fail-over", "5%", "--floor", "5MB"], "error: --floor: '5MB' is not a number with a known unit"),
        (["--fail-over", "5%", "--floor", "-5us"], "error: --floor: '-5us' is not a number with a known unit"),
        (["--metric", "nope"], "error: this profile has no metric 'nope'"),
        (["--by", "line"], "error: Invalid value for '--by'"),
    ],
)
def test_bad_choice_is_said(bragg: Bragg, sides: tuple[Path, Path], arguments: list[str], error: str) -> None:
    outcome = bragg("diff", *sides, *arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(error)


def test_diff_names_findings_that_have_gone_and_new_ones(bragg: Bragg, tmp_path: Path) -> None:
    slow, fast = tmp_path / "slow.bragg", tmp_path / "fast.bragg"
    launches = "\n".join(
        f"host {5 * i}-{5 * i + 4} aten::mm#operator > cuLaunchKernel#gpu_api ->{i + 1}\n"
        f"gpu {7 + 100 * i}-{107 + 100 * i} aten::mm#operator > KERNEL#kernel <-{i + 1}"
        for i in range(4)
    )
    for file, kernel in ((slow, "sgemm_128x128_nn"), (fast, "tf32_gemm")):
        formats.bragg.write(stepped(launches.replace("KERNEL", kernel), 420), file)
    lines = bragg("diff", slow, fast).stdout.splitlines()
    assert lines[1].startswith("finding gone: 71 %  full-precision-matmul: ")
    assert bragg("diff", fast, slow).stdout.splitlines()[1].startswith("new finding: 71 %")


def test_a_finding_that_stays_is_changed_and_has_the_place_of_the_run_after(bragg: Bragg) -> None:
    slow, fast = (RECORDINGS[0].parent / "unseen" / f"h100-dune_restorer_{name}.bragg" for name in ("slow", "fast"))
    findings = [line for line in bragg("diff", slow, fast).stdout.splitlines() if "finding" in line]
    assert [line.partition(":")[0] for line in findings] == ["finding gone", "finding changed"]
    assert findings[1].startswith("finding changed: 60 % > 51 %  full-precision-matmul: ")
    assert "dune_restorer_fast.py:45" in findings[1]


def test_kernels_that_should_take_as_long_and_do_not_are_told(bragg: Bragg) -> None:
    slow, fast = (RECORDINGS[0].parent / "unseen" / f"h100-dune_restorer_{name}.bragg" for name in ("slow", "fast"))
    warnings = [line for line in bragg("diff", slow, fast).stdout.splitlines() if line.startswith("warning")]
    assert warnings[0].startswith(
        f"warning: {slow}: another program shared the GPU: 1,458 launches took 2.54 ms longer"
    )
    assert warnings[1] == (
        "warning: 10 kernels that both sides launched in the same shape took 35.3 % less each: this much may be the "
        "machine's (clocks, another program), not the change's"
    )
    values = json.loads(bragg("diff", slow, fast, "--json").stdout)
    assert values["same_kernels"] == {"count": 10, "change": pytest.approx(-0.353, abs=0.001)}


def test_a_kernel_that_was_launched_more_often_is_compared_by_launch(bragg: Bragg, tmp_path: Path) -> None:
    for name, launches in (("few", "100us x10"), ("many", "120us x60")):
        formats.export(profile_from_text(f"root\n  step\n    heat {launches} @0"), "bragg", tmp_path / name)
    lines = bragg("diff", tmp_path / "few", tmp_path / "many").stdout.splitlines()
    assert lines[0] == (
        "heat was launched 10 times before and 60 times after, and a launch took 10.0 us before, 2.00 us after: "
        "-8.00 us (-80.0 %): sums do not tell which run is faster"
    )
    assert lines[1].startswith("gpu_time: 100 us before, 120 us after")


def test_programs_that_serve_for_a_time_are_compared_by_turn(bragg: Bragg) -> None:
    slow, fast = (RECORDINGS[0].parent / "texts" / f"h200-relevance_judge_{name}.bragg" for name in ("slow", "fast"))
    lines = bragg("diff", slow, fast).stdout.splitlines()
    assert lines[0].startswith(
        "a step: 13.0 ms before, 4.01 ms after: -8.95 ms (-69.1 %), mean of 344 and 1,119 steps; one run each"
    )
    assert (
        "rows are of a turn of the loop at relevance_judge_fast.py:80, which ran 346 times before and 1,121 times "
        "after; what is outside of it is left out"
    ) in lines
    assert "gpu_time a turn: 12.2 ms before, 3.59 ms after: -8.60 ms (-70.5 %)" in lines
    assert not any("sums do not tell" in line for line in lines)
    sums = json.loads(bragg("diff", slow, fast, "--json").stdout)
    assert (sums["total"]["before"], sums["total"]["after"]) == (
        pytest.approx(4.247e9, rel=1e-3),
        pytest.approx(4.04e9, rel=0.01),
    )
    assert sums["step"]["n_calls"] == [344, 1119]
    back = bragg("diff", fast, slow).stdout.splitlines()
    assert back[0].startswith("a step: 4.01 ms before, 13.0 ms after: +8.95 ms (+223")
    gated = bragg("diff", slow, fast, "--gate", "step")
    assert gated.exit_code == 0
    assert gated.stderr.startswith("passed: step: region_time 13.0 ms before, 4.01 ms after: -8.95 ms (-69.1 %)")
    assert "gpu_time: 4.25 s before" in gated.stdout


def test_programs_without_common_paths_are_compared_by_what_ran(bragg: Bragg, tmp_path: Path) -> None:
    for name, scope in (("one", "train"), ("other", "serve")):
        formats.export(
            profile_from_text(f"root\n  {scope}\n    gemm 10us x3\n    {scope}_copy 5us"), "bragg", Path(name)
        )
    lines = bragg("diff", "one", "other").stdout.splitlines()
    assert (
        lines[0] == "none of the time is on call paths that both have, so this compares what ran; call paths: --by path"
    )
    assert [line.split()[-1] for line in lines[4:6]] == ["train_copy", "serve_copy"]
    assert not any("→" in line for line in lines)
    by_path = bragg("diff", "one", "other", "--by", "path").stdout
    assert "train → gemm" in by_path
    assert "so this compares" not in by_path


def test_a_page_names_the_files_as_far_as_they_differ(bragg: Bragg, tmp_path: Path) -> None:
    for folder in ("main", "branch"):
        (tmp_path / folder).mkdir()
        formats.export(profile_from_text("root\n  train\n    gemm 10us"), "bragg", tmp_path / folder / "run.bragg")
    assert (
        bragg(
            "diff", str(tmp_path / "main/run.bragg"), str(tmp_path / "branch/run.bragg"), "--html", "d.html"
        ).exit_code
        == 0
    )
    assert "<title>main/run.bragg → branch/run.bragg" in Path("d.html").read_text()


def test_a_gate_that_noise_keeps_from_deciding_says_so(bragg: Bragg, tmp_path: Path) -> None:
    before, after = tmp_path / "a.bragg", tmp_path / "b.bragg"
    formats.export(profile_from_text("root\n  f 1000us"), "bragg", before)
    formats.export(profile_from_text("root\n  f 1058us"), "bragg", after)
    gate = ("diff", before, after, "--gate", "total", "--fail-over", "2%")
    outcome = bragg(*gate)
    assert outcome.exit_code == 0
    assert outcome.stderr.splitlines()[0].startswith("not decided: total: gpu_time 1.00 ms before, 1.06 ms after")
    assert outcome.stderr.splitlines()[1].startswith("note: not decided: ")
    outcome = bragg(*gate, "--fail-undecided")
    assert outcome.exit_code == 5
    assert "error: total may be over the limit of 2 %" in outcome.stderr


def test_a_caller_that_changed_by_what_is_below_it_has_no_row(bragg: Bragg, tmp_path: Path) -> None:
    before, after = tmp_path / "a.bragg", tmp_path / "b.bragg"
    tree = "root\n  main\n    step\n      {} {}us\n      relu {}us"
    formats.export(profile_from_text(tree.format("matmul", 100, 20)), "bragg", before)
    formats.export(profile_from_text(tree.format("matmul", 200, 21)), "bragg", after)
    names = [line.split("  ")[-1] for line in bragg("diff", before, after).stdout.splitlines()[3:]]
    assert names == ["main → step → matmul", "main → step → relu"]


def test_imports_are_no_part_of_what_the_host_did(bragg: Bragg, tmp_path: Path) -> None:
    before, after = tmp_path / "a.bragg", tmp_path / "b.bragg"
    program = "root\n  main host={}ms\n  <frozen importlib._bootstrap>:1@_find_and_load host={}ms"
    formats.export(profile_from_text(program.format(10, 900)), "bragg", before)
    formats.export(profile_from_text(program.format(8, 1200)), "bragg", after)
    lines = bragg("diff", before, after).stdout.splitlines()
    assert lines[:2] == [
        "imports are left out: 900 ms before, 1.20 s after",
        "host_time: 10.0 ms before, 8.00 ms after: -2.00 ms (-20.0 %)",
    ]
    assert bragg("diff", before, after, "--gate", "total", "--fail-over", "1%").exit_code == 0


def test_a_finding_has_gone_although_another_one_of_its_rule_is_left() -> None:
    def told(*findings: tuple[str, int]) -> Any:
        gain = Gain(5, 10)
        made = [Finding("recompilation", Severity.WARNING, text, line=line, gain=gain) for text, line in findings]
        return SimpleNamespace(worth=lambda _: made, bounds=SimpleNamespace(n_steps=0))

    before = told(("f was compiled 20 times, 9.6 s", 39), ("g was compiled 4 times, 80 ms", 50))
    ((gone, new),) = changed_findings(before, told(("g was compiled 6 times, 0.1 s", 51)))
    assert gone is not None
    assert (gone.line, new) == (39, None)
    # One that says something else is the same one, as far as can be told.
    assert changed_findings(before, told(("h was compiled 9 times", 60), ("g was compiled 4 times, 80 ms", 50))) == []


def test_a_finding_that_saves_much_less_is_told_and_is_not_taken_for_another_of_its_rule() -> None:
    def told(*findings: tuple[str, float]) -> Any:
        made = [Finding("cpu-work", Severity.WARNING, text, gain=Gain(share, 1)) for text, share in findings]
        return SimpleNamespace(worth=lambda _: made, bounds=SimpleNamespace(n_steps=0))

    before = told(("argmax takes 500 ms", 0.68), ("copy_ takes 5 ms", 0.03), ("sum takes 1 ms", 0.2))
    after = told(("copy_ takes 6 ms", 0.3), ("min takes 11 ms", 0.19), ("sum takes 1 ms", 0.3))
    changed = changed_findings(before, after)
    assert [line.split(" takes")[0] for line in changed_lines(changed, Style())] == [
        "finding gone: 68 %  cpu-work: argmax",
        "finding changed: 3.0 % > 30 %  cpu-work: copy_",
        "new finding: 19 %  cpu-work: min",
    ]


@pytest.mark.parametrize(("n_after", "is_changed"), [(100, True), (200, False), (0, True)])
def test_a_finding_that_saves_another_time_of_a_step_is_changed(n_after: int, is_changed: bool) -> None:
    def told(text: str, wall_ns: float, n_steps: int) -> Any:
        made = [Finding("planning", Severity.WARNING, text, gain=Gain(wall_ns, 10e9))]
        return SimpleNamespace(worth=lambda _: made, bounds=SimpleNamespace(n_steps=n_steps))

    before, after = told("sdpa keeps the host for 7.9 ms", 4e9, 100), told("sdpa keeps it for 13 ms", 7e9, n_after)
    lines = changed_lines(changed_findings(before, after), Style())
    assert lines == ["finding changed: 40 % > 70 %  planning: sdpa keeps it for 13 ms"] * is_changed
    assert bool(changed_findings(after, before)) == is_changed


def test_gates_refuse_runs_with_a_gpu_beside_runs_without(bragg: Bragg, tmp_path: Path) -> None:
    before, after = tmp_path / "a.bragg", tmp_path / "b.bragg"
    formats.export(profile_from_text("root\n  f host=9ms\n    matmul 1000us"), "bragg", before)
    formats.export(profile_from_text("root\n  f host=3ms"), "bragg", after)
    outcome = bragg("diff", before, after, "--gate", "total")
    assert (outcome.exit_code, outcome.stderr.splitlines()[0]) == (
        2,
        "error: a GPU worked in the runs before alone, so their times are not comparable",
    )
    assert bragg("diff", before, after, "--gate", "total", "-m", "host_time").exit_code == 0


def test_gates_ask_about_runs_that_have_no_path_in_common(bragg: Bragg, tmp_path: Path) -> None:
    before, after = tmp_path / "a.bragg", tmp_path / "b.bragg"
    formats.export(profile_from_text("root\n  f\n    matmul 1000us"), "bragg", before)
    formats.export(profile_from_text("root\n  g\n    relu 900us"), "bragg", after)
    outcome = bragg("diff", before, after, "--gate", "total")
    assert outcome.exit_code == 0
    assert outcome.stderr.splitlines()[0].endswith("are these runs of one program?")


def test_steps_of_a_timeline_are_those_of_its_steady_state(bragg: Bragg) -> None:
    recording = RECORDINGS[0].parent / "h100-timm_resnet50.bragg"
    line = bragg("diff", recording, recording).stdout.splitlines()[0]
    assert line.startswith("a step: 96.3 ms before, 96.3 ms after: 0 ns (0.0 %), mean of 19 steps each")


def test_a_step_of_a_run_without_a_core_tells_no_change(bragg: Bragg, tmp_path: Path) -> None:
    recording, busy = RECORDINGS[0].parent / "h100-timm_resnet50.bragg", tmp_path / "busy.bragg"
    run = formats.load(recording)
    scheduled = {"scheduled_before": [0, 0], "scheduled": [3_000_000_000, 1_000_000_000]}
    formats.export(replace(run, meta={**run.meta, **scheduled}), "bragg", busy)
    said = (
        "mean of 19 steps each; one run each, and the main thread of one had no core for 25.0 % of its time: "
        "they do not tell what the change does"
    )
    for sides in ((recording, busy), (busy, recording)):
        assert bragg("diff", *sides).stdout.splitlines()[0].endswith(said)


def test_the_time_of_a_program_without_steps_and_without_a_core_tells_no_change(bragg: Bragg, tmp_path: Path) -> None:
    calm, busy = tmp_path / "calm.bragg", tmp_path / "busy.bragg"
    formats.export(profile_from_text("root\n  f host=9s"), "bragg", calm)
    scheduled = {"scheduled_before": [0, 0], "scheduled": [3_000_000_000, 1_000_000_000]}
    formats.export(replace(profile_from_text("root\n  f host=4s"), meta=scheduled), "bragg", busy)
    told = (
        "; one run each, and the main thread of one had no core for 25.0 % of its time: "
        "they do not tell what the change does"
    )
    formats.export(profile_from_text("root\n  f host=5s"), "bragg", tmp_path / "near.bragg")
    near = "host_time: 5.00 s before, 4.00 s after: -1.00 s (-20.0 %)"
    assert near + told in bragg("diff", tmp_path / "near.bragg", busy).stdout.splitlines()
    total = "host_time: 9.00 s before, 4.00 s after: -5.00 s (-55.6 %)"
    part = told.replace(": they do not tell what the change does", ": that alone does not explain the difference")
    assert total + part in bragg("diff", calm, busy).stdout.splitlines()
    formats.export(profile_from_text("root\n  f host=4s"), "bragg", tmp_path / "other.bragg")
    assert total in bragg("diff", calm, tmp_path / "other.bragg").stdout.splitlines()


def test_time_in_which_others_had_the_core_is_left_out_of_the_whole(bragg: Bragg, tmp_path: Path) -> None:
    sides = tmp_path / "before.bragg", tmp_path / "after.bragg"
    for side, text, ready_ns in zip(sides, ("f host=4s", "f host=2s"), (2_000_000_000, 500_000_000), strict=True):
        profile = profile_from_text(f"root\n  {text}")
        took_ns = int(profile.total("host_time"))
        ran = {
            "program_ran_before_ns": 0,
            "program_ran_ns": took_ns - ready_ns,
            "started_ns": 1,
            "stopped_ns": took_ns + 1,
        }
        scheduled = {"scheduled_before": [0, 0], "scheduled": [took_ns - ready_ns, ready_ns]}
        formats.export(replace(profile, meta={**ran, **scheduled}), "bragg", side)
    (told,) = (line for line in bragg("diff", *sides).stdout.splitlines() if line.startswith("host_time"))
    assert told == (
        "host_time: 2.00 s before, 1.50 s after: -500 ms (-25.0 %); one run each, assumed to vary by up to 24.8 %, "
        "without 2.00 s and 500 ms in which other programs had the core; the rows include that time"
    )
    values = json.loads(bragg("diff", *sides, "--json").stdout)
    assert values["undisturbed"]["taken"] == [2e9, 5e8]
    assert values["total"]["before"] == 4e9


def test_programs_without_common_steps_are_compared_by_how_long_they_took(bragg: Bragg, tmp_path: Path) -> None:
    sides = tmp_path / "before.bragg", tmp_path / "after.bragg"
    for side, kernel_us, took_ns in zip(sides, (900, 100), (20_000_000, 30_000_000), strict=True):
        run = profile_from_text(f"root\n  f\n    matmul {kernel_us}us")
        formats.export(replace(run, meta={"started_ns": 1, "stopped_ns": took_ns + 1}), "bragg", side)
    lines = bragg("diff", *sides).stdout.splitlines()
    assert lines[0] == (
        "the program: 20.0 ms before, 30.0 ms after: +10.0 ms (+50.0 %); one run each, assumed to vary by up to 24.8 %"
    )
    assert lines[1] == "gpu_time: 900 us before, 100 us after: -800 us (-88.9 %)"
    assert json.loads(bragg("diff", *sides, "--json").stdout)["program"]["after"] == 30e6


def test_a_run_whose_main_thread_had_no_core_is_named(bragg: Bragg, sides: tuple[Path, Path]) -> None:
    starved = {"scheduled_before": [0, 0], "scheduled": [1_000_000_000, 3_000_000_000]}
    busy = sides[0].with_name("busy.bragg")
    formats.export(replace(formats.load(sides[1]), meta=starved), "bragg", busy)
    told = [line for line in bragg("diff", sides[0], busy).stdout.splitlines() if line.startswith("warning")]
    assert len(told) == 1
    assert told[0].startswith(f"warning: {busy}: the main thread ran 1.00 s, and waited another 3.00 s for a core")


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("path:__getitem__", "hint: Did you mean path:Rows.__getitem__? Names are those of bragg view"),
        ("path:Rows.__getitm__", "hint: Did you mean path:Rows.__getitem__? Names are those of bragg view"),
        ("total=30", "error: --gate: 30 of what? host_time is a time"),
    ],
)
def test_a_gate_that_is_nearly_right_is_answered_with_the_right_one(
    bragg: Bragg, tmp_path: Path, gate: str, said: str
) -> None:
    file = tmp_path / "a.bragg"
    formats.export(profile_from_text("root\n  a.py:1@Rows.__getitem__ host=1ms"), "bragg", file)
    outcome = bragg("diff", file, file, "--gate", gate)
    assert outcome.exit_code == 2
    assert any(line.startswith(said) for line in outcome.stderr.splitlines())


@pytest.mark.parametrize(("functions", "is_copy"), [(("train", "load"), True), (("serve", "reply"), False)])
def test_functions_of_a_copied_script_are_those_of_the_first_one(
    bragg: Bragg, tmp_path: Path, functions: tuple[str, str], is_copy: bool
) -> None:
    files = tmp_path / "before.bragg", tmp_path / "after.bragg"
    for file, script, names in zip(files, ("/w/hw.py", "/w/hw_fixed.py"), (("train", "load"), functions), strict=True):
        text = "root\n" + "".join(f"  {script}:{line}@{name} host=50ms\n" for line, name in enumerate(names, 1))
        meta = {"command": ["python", Path(script).name], "cwd": "/w"}
        formats.export(replace(profile_from_text(text), meta=meta), "bragg", file)
    told = bragg("diff", *files).stdout
    assert ("functions of hw_fixed.py are compared with those of hw.py" in told) == is_copy
    assert ("no difference" in told) == is_copy
