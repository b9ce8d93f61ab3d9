"""`bragg view` as users of Proton's viewer call it, on Proton's files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Bragg

FOLDER = Path(__file__).parents[3] / "golden" / "proton"


@pytest.fixture(params=["3.6", "3.9"])
def kernels(request: pytest.FixtureRequest) -> Path:
    """The same kernels as each release writes them."""
    return FOLDER / f"kernels-{request.param}.hatchet"


def values(outcome: Any, name: str) -> dict[str, Any]:
    """The values of one metric by name; of equal names the last."""
    assert outcome.stderr == ""
    return {row["name"]: row["values"][name] for row in json.loads(outcome.stdout)["rows"]}


def test_parents_have_rates_and_shares_of_what_is_below(bragg: Bragg, kernels: Path) -> None:
    outcome = bragg("view", kernels, "-m", "time/us,tflop8/s,gbyte/s,avg_time/us,time/%,util", "--json")
    assert values(outcome, "time/us")["total"] == 310
    assert values(outcome, "tflop8/s")["forward"] == pytest.approx(95.238, abs=1e-3)
    assert values(outcome, "tflop8/s")["total"] == pytest.approx(96.774, abs=1e-3)
    assert values(outcome, "gbyte/s")["total"] == pytest.approx(38.710, abs=1e-3)
    assert values(outcome, "avg_time/us")["total"] == pytest.approx(310 / 17)
    assert values(outcome, "time/%")["forward"] == pytest.approx(67.742, abs=1e-3)
    assert values(outcome, "util")["matmul @gpu1"] == pytest.approx(0.051, abs=1e-3)


@pytest.mark.parametrize(
    ("written", "name"), [("time", "gpu_time"), ("TIME (ns)", "gpu_time"), ("Count", "gpu_count"), ("Bytes", "bytes")]
)
def test_names_are_read_in_any_case_with_and_without_unit(bragg: Bragg, kernels: Path, written: str, name: str) -> None:
    shown = json.loads(bragg("view", kernels, "-m", written, "--json").stdout)["metrics"]
    assert [metric["name"] for metric in shown] == [name]


def test_list_names_recorded_and_computed_metrics(bragg: Bragg, kernels: Path) -> None:
    lines = bragg("view", "-l", kernels).stdout.splitlines()
    assert lines[0] == "Recorded metrics:"
    assert "- gpu_time   ns   inclusive  time" in lines
    assert "util, intensity, flop/s" in lines[lines.index("Computed metrics:") + 1]


def test_list_in_json(bragg: Bragg, kernels: Path) -> None:
    listed = json.loads(bragg("view", "-l", kernels, "--json").stdout)
    assert {"name": "gpu_count", "unit": "1", "kind": "inclusive"} in listed["metrics"]
    assert "tflop8/s" in listed["computed"]


@pytest.mark.parametrize(
    ("format_name", "label"),
    [
        ("full", "/src/train.py:12@step"),
        ("file_function_line", "train.py:12@step"),
        ("function_line", "12@step"),
        ("file_function", "train.py@step"),
    ],
)
def test_code_is_written_as_wanted(bragg: Bragg, kernels: Path, format_name: str, label: str) -> None:
    lines = bragg("view", kernels, "-f", format_name).stdout.splitlines()
    assert [line.split()[-1] for line in lines if "step" in line] == [label]


def test_print_sorted_puts_the_table_behind_the_tree(bragg: Bragg, kernels: Path) -> None:
    lines = bragg("view", kernels, "--print-sorted").stdout.splitlines()
    table = lines[lines.index("", 4) + 1 :]
    assert table[0].startswith("gpu_time us")
    assert [line.split()[-1] for line in table[1:3]] == ["matmul", "relu"]


def test_computation_of_launch_metadata_is_left_out_and_said(bragg: Bragg, kernels: Path) -> None:
    outcome = bragg("view", kernels)
    assert "sum" not in outcome.stdout
    assert "without the computation of launch metadata: 4.00 us of 314 us gpu_time (1.3 %) left out" in outcome.stdout


@pytest.mark.parametrize("option", ["-diff", "--diff-profile"])
def test_difference_is_that_of_the_values_at_each_call_path(
    bragg: Bragg, kernels: Path, tmp_path: Path, option: str
) -> None:
    before = tmp_path / "before.hatchet"
    before.write_text(kernels.read_text().replace('"time (ns)": 200000', '"time (ns)": 160000').replace("relu", "gelu"))
    metrics = "time/us,avg_time/us,tflop8/s"
    outcome = bragg("view", "-m", metrics, option, before, kernels, "--json")
    assert values(outcome, "time/us") == {"total": 40, "forward": 40, "matmul @gpu0": 40, "gelu @gpu0": -10} | {
        "relu @gpu0": 10
    }
    assert values(outcome, "avg_time/us")["matmul @gpu0"] == 4
    assert values(outcome, "avg_time/us")["relu @gpu0"] is None
    assert values(outcome, "tflop8/s")["matmul @gpu0"] == pytest.approx(-25)
    text = bragg("view", "-m", metrics, option, before, kernels).stdout
    row = next(line.split() for line in text.splitlines() if "matmul @gpu0" in line)
    assert row[:3] == ["+40.00", "+4.000", "-25.00"]


@pytest.mark.parametrize("flat", [[], ["--flat"]])
def test_rows_below_a_value_are_left_out(bragg: Bragg, kernels: Path, flat: list[str]) -> None:
    shown = values(bragg("view", kernels, *flat, "-m", "time/us", "--least", "20", "--json"), "time/us")
    assert "relu" not in " ".join(shown)
    assert min(shown.values()) >= 20


def test_no_difference_is_said(bragg: Bragg, kernels: Path) -> None:
    outcome = bragg("view", "-diff", kernels, kernels)
    assert (outcome.exit_code, outcome.stdout.splitlines()[-1]) == (0, "gpu_time is the same everywhere")


def test_difference_is_no_table(bragg: Bragg, kernels: Path) -> None:
    outcome = bragg("view", "--flat", "-diff", kernels, kernels)
    assert (outcome.exit_code, outcome.stderr.splitlines()[-1]) == (2, "hint: For a table try: bragg diff --by kernel")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "error"),
    [
        (["-m", "utl"], 2, "error: this profile has no metric 'utl'\nhint: Nearest: util"),
        (["-m", "flop16/s"], 2, "error: flop16/s needs flops16, and this profile has none\n"),
        (["-m", "time/parsec"], 2, "error: this profile has no metric 'time/parsec'\n"),
        (["-i", ".*nowhere.*"], 7, "error: nothing matches --include '.*nowhere.*'\n"),
        (["-i", "matmul", "-e", "nowhere"], 7, "error: nothing matches --exclude 'nowhere'\n"),
        (["-t", "101"], 2, "error: Invalid value for '-t' / '--threshold'"),
        (["--print-sorted", "--json"], 2, "error: --json is one view\nhint: For the table"),
        (["-f", "short"], 2, "error: Invalid value for '-f' / '--format'"),
        (["-diff", "gone.hatchet"], 6, "error: cannot read gone.hatchet"),
    ],
)
def test_misuse_is_one_clear_line(
    bragg: Bragg, kernels: Path, arguments: list[str], exit_code: int, error: str
) -> None:
    outcome = bragg("view", kernels, *arguments)
    assert (outcome.exit_code, outcome.stdout) == (exit_code, "")
    assert outcome.stderr.startswith(error)


@pytest.mark.parametrize(
    ("arch", "relu", "reason"),
    [
        ("999", 0.025, "no peaks are known for sm_999"),
        (None, None, "device 0 was not recorded; device 1 was not recorded"),
    ],
)
def test_utilisation_of_an_unknown_device_is_absent_with_the_reason_and_hides_no_kernel(
    bragg: Bragg, kernels: Path, tmp_path: Path, arch: str | None, relu: float | None, reason: str
) -> None:
    tree, devices = json.loads(kernels.read_text())
    devices["CUDA"] = {number: {**device, "arch": arch} for number, device in devices["CUDA"].items() if arch}
    path = tmp_path / "unknown.hatchet"
    path.write_text(json.dumps([tree, devices]))
    outcome = bragg("view", path, "-m", "util,tflop/s", "--json")
    util, rate = values(outcome, "util"), values(outcome, "tflop/s")
    assert (util["total"], util["matmul @gpu0"], rate["matmul @gpu0"]) == (None, None, pytest.approx(100))
    assert util["relu @gpu0"] == (relu if relu is None else pytest.approx(relu, abs=1e-3))
    assert list(values(bragg("view", path, "-m", "util", "--flat", "--json"), "util")) == ["matmul", "relu"]
    assert f"util n/a: {reason}" in bragg("view", path, "-m", "util").stdout.splitlines()


def test_what_is_excluded_may_be_no_part_of_what_is_included(bragg: Bragg, kernels: Path) -> None:
    outcome = bragg("view", kernels, "-i", "matmul", "-e", "relu", "-m", "tflop/s,time/us")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.stdout.splitlines()[3].split() == ["tflop/s", "time/us", "call", "path"]


def test_sums_that_are_assumed_are_said_to_be(bragg: Bragg) -> None:
    note = "the file does not say how lat add up: shown with what is below"
    assert note in bragg("view", FOLDER / "scopes-3.9.hatchet", "-m", "lat").stdout
    assert note not in bragg("view", FOLDER / "scopes-3.6.hatchet", "-m", "lat").stdout


@pytest.mark.parametrize("metric", ["num_samples", "Stalled_wait", "num_samples/%"])
def test_instruction_samples_are_shown_by_line(bragg: Bragg, metric: str) -> None:
    shown = json.loads(bragg("view", FOLDER / "samples-3.9.hatchet", "-m", metric, "--json").stdout)
    assert next((row["file"], row["line"]) for row in shown["rows"] if row["kind"] == "line") == ("dir/k.py", 3)


def test_specializations_are_apart_or_together(bragg: Bragg, tmp_path: Path) -> None:
    text = (FOLDER / "kernels-3.9.hatchet").read_text()
    path = tmp_path / "file"
    path.write_text(text.replace('"relu"', '"matmul<BM=64 w4 s3>"').replace('"matmul"', '"matmul<BM=128 w8 s3>"'))
    names = ["matmul<BM=128 w8 s3>", "matmul<BM=64 w4 s3>"]
    assert list(values(bragg("view", path, "--flat", "--json"), "gpu_time")) == names
    together = values(bragg("view", path, "--flat", "--json", "--group-by", "kernel"), "gpu_time")
    assert together == {"matmul": 310_000}


def test_every_file_of_proton_is_shown(bragg: Bragg, tmp_path: Path) -> None:
    for file in sorted(FOLDER.iterdir()):
        shutil.copy(file, tmp_path / "renamed")
        outcome = bragg("view", tmp_path / "renamed", "-m", "bytes" if "scopes" in file.name else "")
        assert (outcome.exit_code, outcome.stderr) == (0, ""), file
        assert outcome.stdout.splitlines()[:2] == [
            f"{tmp_path}/renamed: recorded by proton",
            outcome.stdout.splitlines()[1],
        ]
