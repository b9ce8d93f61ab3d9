"""Which part of a run `bragg view` opens."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from tests.support.profiles import profile_from_text
from tests.support.recordings import RECORDINGS, SAMPLE
from tests.unit.cli.conftest import Bragg

IDLE = next(path for path in RECORDINGS if "timm" in path.stem)
View = Callable[..., dict[str, Any]]


@pytest.fixture
def view(bragg: Bragg) -> View:
    def view(*arguments: object) -> dict[str, Any]:
        outcome = bragg("view", *arguments, "--json")
        assert outcome.exit_code == 0, outcome.stderr
        told: dict[str, Any] = json.loads(outcome.stdout)
        return told

    return view


def total(told: dict[str, Any], metric: str) -> float:
    return float(told["rows"][0]["values"][metric])


def test_where_the_gpu_waited_for_the_host_its_time_in_the_steady_state_is_shown(view: View) -> None:
    told = view(IDLE)
    assert [metric["name"] for metric in told["metrics"]] == ["host_time", "gpu_time", "gpu_count"]
    assert total(told, "gpu_time") == pytest.approx(told["wall"]["steady"]["gpu_busy"]["0"] * 1829e6, rel=0.01)
    assert told["hints"][0].startswith("the GPU waited for the host: this is the steady state, by host time")


def test_without_a_timeline_it_is_what_the_gpu_waited_for(view: View) -> None:
    told = view(IDLE.parent / "pairs/h100-cpu_work_slow.bragg")
    assert told["metrics"][0]["name"] == "gpu_idle_time"
    assert total(told, "gpu_idle_time") == pytest.approx(1.47e9, rel=0.01)
    assert told["hints"][0].startswith("the GPU waited for the host: for these call paths and the code before them")


def test_a_busy_gpu_is_shown_by_its_own_time(view: View) -> None:
    told = view(SAMPLE)
    assert told["metrics"][0]["name"] == "gpu_time"
    assert [hint for hint in told["hints"] if "steady state" in hint] == [
        "the whole run; its steady state alone: --part steady"
    ]


@pytest.mark.parametrize("arguments", [["--part", "all"], ["-m", "gpu_time"]])
def test_the_whole_run_is_shown_if_it_is_asked_for(view: View, arguments: list[str]) -> None:
    told = view(IDLE, *arguments)
    assert told["metrics"][0]["name"] == "gpu_time"
    assert total(told, "gpu_time") == pytest.approx(385.72e6, rel=1e-4)


def test_a_metric_that_is_asked_for_is_said_to_be_of_the_whole_run(view: View) -> None:
    note = "the whole run; its steady state alone: --part steady"
    assert note in view(IDLE, "-m", "gpu_time", "--flat")["hints"]
    assert note not in view(IDLE, "-m", "gpu_time", "--part", "all")["hints"]
    assert note not in view(IDLE)["hints"]


def test_any_metric_of_the_steady_state_can_be_asked_for(view: View) -> None:
    part, whole = (view(IDLE, "--part", name, "-m", "gpu_time", "--flat") for name in ("steady", "all"))
    assert sum(row["values"]["gpu_time"] for row in part["rows"]) == pytest.approx(355.51e6, rel=1e-4)
    assert sum(row["values"]["gpu_time"] for row in whole["rows"]) == pytest.approx(385.72e6, rel=1e-4)


def test_a_profile_without_a_steady_state_says_so(bragg: Bragg) -> None:
    file = Path(__file__).parents[2] / "golden/imports/kineto.json.gz"
    outcome = bragg("view", file, "--part", "steady")
    assert outcome.exit_code == 2
    assert "this profile has no steady state" in outcome.stderr


def test_the_text_says_which_part_it_shows(bragg: Bragg) -> None:
    lines = bragg("view", IDLE).stdout.splitlines()
    assert lines[1].startswith("start 12.6 s | warm-up 1.23 s | steady 1.83 s (19 steps of 96.3 ms, GPU busy 19 %)")
    tree = next(at for at, line in enumerate(lines) if line.startswith("host_time"))
    assert lines[tree - 2].startswith("the GPU waited for the host: this is the steady state")


IMPORTS = """root
  a.py:1@main host=10ms
    <frozen importlib._bootstrap>:1@_find_and_load
      torch.py:1@<module> host=60ms
    a.py:2@work host=30ms"""


def test_imports_of_a_program_without_a_gpu_are_left_out_and_named(view: View, tmp_path: Path) -> None:
    path = tmp_path / "a.bragg"
    formats.export(profile_from_text(IMPORTS), "bragg", path)
    assert total(view(path), "host_time") == 40e6
    note = "imports took 60.0 ms, 60.0 % of host_time, and are left out; with them: --part all"
    assert view(path)["hints"] == [note]
    assert total(view(path, "--part", "all"), "host_time") == 100e6
    assert total(view(path, "--include", "torch"), "host_time") == 60e6
    assert (view(path, "--include", "work")["hints"], total(view(path, "--include", "work"), "host_time")) == (
        [note],
        30e6,
    )
    assert total(view(path, "--exclude", "work"), "host_time") == 10e6


@pytest.mark.parametrize("asked", [["-m", "host_time"], ["-m", "host_time,host_time/own"], ["--sort", "name"]])
def test_naming_what_is_shown_anyway_shows_the_same(view: View, tmp_path: Path, asked: list[str]) -> None:
    path = tmp_path / "a.bragg"
    formats.export(profile_from_text(IMPORTS), "bragg", path)
    assert total(view(path, *asked), "host_time") == 40e6
    assert view(path, *asked)["hints"] == view(path)["hints"]
    assert total(view(path, *asked, "--part", "all"), "host_time") == 100e6


def test_the_tree_does_not_depend_on_how_long_imports_took(view: View, tmp_path: Path) -> None:
    path = tmp_path / "a.bragg"
    formats.export(profile_from_text(IMPORTS.replace("60ms", "1us")), "bragg", path)
    assert [row["name"] for row in view(path)["rows"]] == ["total", "main", "work"]


def test_imports_are_left_out_of_the_table_of_modules_too(view: View, tmp_path: Path) -> None:
    path = tmp_path / "a.bragg"
    profile = replace(profile_from_text(f"{IMPORTS}\n  Net host=10ms"), meta={"attributes": {"Net": {"module": "Net"}}})
    formats.export(profile, "bragg", path)
    modules = view(path, "--group-by", "module")
    assert total(modules, "host_time") == 50e6
    assert modules["hints"] == ["imports took 60.0 ms, 54.5 % of host_time, and are left out; with them: --part all"]
    assert total(view(path, "--group-by", "module", "--part", "all"), "host_time") == 110e6


def test_the_steady_state_of_modules_is_shown_or_refused(bragg: Bragg, view: View) -> None:
    part, whole = (view(IDLE, "--group-by", "module", "--part", name, "-m", "gpu_time") for name in ("steady", "all"))
    assert total(part, "gpu_time") == pytest.approx(355.51e6, rel=1e-4)
    assert total(whole, "gpu_time") == pytest.approx(385.72e6, rel=1e-4)
    outcome = bragg("view", IDLE, "--group-by", "region", "--part", "steady")
    assert (outcome.exit_code, "--group-by region shows the whole run" in outcome.stderr) == (2, True)


def test_the_copies_that_read_clocks_in_kernels_are_shown_only_if_all_is_asked_for(view: View, tmp_path: Path) -> None:
    text = "root\n  <clocks inside kernels> #state\n    copy DtoH 90ms\n  train.py:40@main\n    matmul 9ms x3"
    path = tmp_path / "a.bragg"
    formats.export(profile_from_text(text), "bragg", path)
    told = view(path)
    assert total(told, "gpu_time") == 9e6
    assert told["hints"][0].startswith("the copies that read the clocks inside kernels are left out")
    assert total(view(path, "--part", "all"), "gpu_time") == 99e6


def test_a_timeline_is_not_asked_for_where_it_would_not_help(bragg: Bragg, tmp_path: Path) -> None:
    path = tmp_path / "cpu.bragg"
    formats.bragg.write(profile_from_text("root\n  main host=3ms"), path)
    outcome = bragg("view", path, "--part", "steady")
    assert "this profile has no steady state" in outcome.stderr
    assert "none worked here" in outcome.stderr
    assert "--data trace" not in outcome.stderr


def test_a_table_has_the_kernels_though_the_gpu_waited_for_the_host(view: View) -> None:
    told = view(IDLE, "--flat")
    assert told["metrics"][0]["name"] == "gpu_time"
    sum_ns = sum(row["values"]["gpu_time"] for row in told["rows"])
    assert sum_ns == pytest.approx(told["wall"]["steady"]["gpu_busy"]["0"] * 1829e6, rel=0.01)
    assert told["hints"][0].startswith("kernels of the steady state; what the GPU waited for: -m host_time")
    summed = view(IDLE.parent / "pairs/h100-cpu_work_slow.bragg", "--flat")
    assert (summed["metrics"][0]["name"], summed["rows"][0]["name"]) == ("gpu_time", "copy HtoD")


def test_a_metric_of_the_whole_run_alone_is_said_to_be(bragg: Bragg) -> None:
    outcome = bragg("view", IDLE, "--part", "steady", "-m", "samples")
    assert (outcome.exit_code, outcome.stderr) == (
        2,
        "error: samples is not known of the steady state alone\nhint: Of the whole run: --part all\n",
    )
