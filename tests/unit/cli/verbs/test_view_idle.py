from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from tests.support.profiles import profile_from_text
from tests.support.recordings import SAMPLE
from tests.support.traces import trace_from_text
from tests.unit.cli.conftest import Bragg

TRACE = """
    thread 1
      0-100000 step
      0-5000 launch ->1
      40000-60000 launch ->2
      61000-62000 launch ->3
    stream 7
      10000-20000 first <-1
      70000-80000 second <-2
      82000-90000 third <-3"""


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """A timeline: 40 us late, 10 us queued, and a pause of 2 us."""
    path = tmp_path / "trace.bragg"
    formats.export(trace_from_text(TRACE), "bragg", path)
    return path


def rows(bragg: Bragg, *arguments: object) -> dict[str, dict[str, float]]:
    found = json.loads(bragg("view", "--idle", "--json", *arguments).stdout)
    return {row["name"]: row["values"] for row in found["rows"]}


def test_idle_time_is_shown_by_path_below_a_sentence(bragg: Bragg, trace_file: Path) -> None:
    lines = bragg("view", trace_file, "--idle").stdout.splitlines()
    assert lines[2].startswith(
        "GPU 0 idled 52.0 us, 65.0 % of the 80.0 us from its first to its last work, in 2 pauses"
    )
    assert [line.split()[-1] for line in lines if "└─" in line or "├─" in line][:2] == ["step", "launch"]
    assert lines[4].split()[:1] == ["gpu_idle_time"]


def test_json_has_every_number(bragg: Bragg, trace_file: Path) -> None:
    found = rows(bragg, trace_file)
    assert found["total"]["gpu_idle_time"] == 52_000
    assert found["step"] == {"gpu_idle_time": 20_000, "gpu_idle_count": 1, "gpu_idle_longest": 20_000}
    assert found["<launched and not begun>"]["gpu_idle_time"] == 10_000
    assert found["<short pauses>"] == {"gpu_idle_time": 2_000, "gpu_idle_count": 1, "gpu_idle_longest": 2_000}


def test_what_a_short_pause_is_can_be_chosen(bragg: Bragg, trace_file: Path) -> None:
    assert "<short pauses>" not in rows(bragg, trace_file, "--least-pause", "2")
    assert rows(bragg, trace_file, "--least-pause", "60")["<short pauses>"]["gpu_idle_time"] == 52_000


def test_a_table_by_name_is_there_too(bragg: Bragg, trace_file: Path) -> None:
    lines = bragg("view", trace_file, "--idle", "--flat").stdout.splitlines()
    assert [line.split()[-1] for line in lines[-4:]] == ["step", "launch", "begun>", "pauses>"]


def test_a_profile_without_a_timeline_is_refused_with_a_hint(bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg("view", profile_file, "--idle")
    assert outcome.exit_code == 2
    assert "--data trace" in outcome.stderr
    assert bragg("view", profile_file, "--idle", "--group-by", "module").exit_code == 2


def test_a_gpu_that_never_paused_is_said(bragg: Bragg, tmp_path: Path) -> None:
    busy = trace_from_text("thread 1\n  0-5 launch ->1\nstream 7\n  10-20 first <-1\n  20-30 second")
    formats.export(busy, "bragg", tmp_path / "busy.bragg")
    outcome = bragg("view", tmp_path / "busy.bragg", "--idle")
    assert outcome.exit_code == 7
    assert outcome.stderr.startswith("error: no GPU paused between its first and its last work\nhint: ")


def test_traces_of_pytorch_have_idle_time_too(bragg: Bragg, tmp_path: Path) -> None:
    def event(category: str, name: str, start_us: int, end_us: int, **args: int) -> dict[str, object]:
        place = {"pid": 0, "tid": 7} if category == "kernel" else {"pid": 42, "tid": 42}
        times = {"ts": start_us, "dur": end_us - start_us}
        return {"ph": "X", "cat": category, "name": name, **place, **times, "args": args}

    events = [
        event("cpu_op", "aten::mm", 0, 20),
        event("cuda_runtime", "cudaLaunchKernel", 5, 10, correlation=1),
        event("user_annotation", "load", 30, 90),
        event("cpu_op", "aten::add", 100, 150),
        event("cuda_runtime", "cudaLaunchKernel", 120, 130, correlation=2),
        event("kernel", "gemm", 10, 50, correlation=1, device=0, stream=7),
        event("kernel", "add", 132, 140, correlation=2, device=0, stream=7),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": events}))
    times = {name: values["gpu_idle_time"] for name, values in rows(bragg, path, "--least-pause", "0").items()}
    # 50 to 132: load until 90, nothing until 100, the operator until 120, the launch until 130.
    assert times["total"] == 82_000
    assert times["load"] == 40_000
    assert times["aten::add"] == 40_000
    assert times["cudaLaunchKernel"] == 10_000
    assert times["<launched and not begun>"] == 2_000


@pytest.mark.parametrize("part", ["all", "steady"])
def test_the_sentence_is_of_the_part_that_is_shown(bragg: Bragg, part: str) -> None:
    shown = json.loads(bragg("view", SAMPLE, "--idle", "--part", part, "--json").stdout)
    total_ns = shown["rows"][0]["values"]["gpu_idle_time"]
    assert sum(idle["idle_ns"] for idle in shown["idle"]) == pytest.approx(total_ns, rel=0.01)
    assert [idle["is_steady"] for idle in shown["idle"]] == [part == "steady"]
    sentence = next(
        line for line in bragg("view", SAMPLE, "--idle", "--part", part).stdout.splitlines() if " idled " in line
    )
    assert ("of the steady state" in sentence) == (part == "steady")


def test_a_run_without_a_gpu_is_not_asked_to_record_one(bragg: Bragg, tmp_path: Path) -> None:
    profile = replace(profile_from_text("root\n  main host=3ms"), meta={"backend": "cpu"})
    formats.export(profile, "bragg", tmp_path / "cpu.bragg")
    outcome = bragg("view", tmp_path / "cpu.bragg", "--idle")
    assert "no GPU worked in this run" in outcome.stderr
    assert "--data trace" not in outcome.stderr
