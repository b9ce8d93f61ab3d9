from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.cli.run_report import RunReport
from bragg.errors import BackendUnavailable
from bragg.model import Profile, SliceTable
from bragg.views.terminal.header import header_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import PLAIN, Style
from tests.support.profiles import profile_from_text
from tests.support.recordings import RECORDINGS, SAMPLE

FAILED = {"cuda": {"state": "failed", "reason": "the slot is taken"}}


def report(tmp_path: Path, *profiles: Profile, notes: tuple[str, ...] = ()) -> RunReport:
    written = []
    for number, profile in enumerate(profiles):
        path = tmp_path / f"{number}.bragg"
        path.write_bytes(b"x" * 1200)
        written.append((path, profile))
    return RunReport(0, 1.5, written, 0, list(notes))


def recorded(text: str, **meta: Any) -> Profile:
    return replace(profile_from_text(text), meta={"statistics": {}, **meta})


def test_profile_with_the_most_gpu_time_is_the_one_to_look_at(tmp_path: Path) -> None:
    launcher = profile_from_text("root\n  wait host=9s")
    worker = profile_from_text("root\n  k 5ms host=1ms")
    assert report(tmp_path, launcher, worker).main[1] is worker
    rank = replace(profile_from_text("root\n  work host=1s"), meta={"rank": 0})
    assert report(tmp_path, launcher, rank).main[1] is rank


def test_report_has_at_most_fifteen_lines(tmp_path: Path) -> None:
    losses = {"bad_timestamps": 1, "unattributed_records": 1, "refused_nodes": 1}
    busy = {"gpu_busy_ns": {"0": 1}, "gpu_first_ns": 0, "gpu_last_ns": 100}
    text = "root\n" + "".join(f"  kernel_{number} 1ms host=1ms\n" for number in range(20))
    profile = replace(profile_from_text(text), meta={"statistics": losses, **busy})
    lines = report(tmp_path, profile, notes=("a", "b", "c")).lines(PLAIN, summary=True, every_process=False)
    assert len(lines) == 15


def test_last_line_names_file_size_and_next_command(tmp_path: Path) -> None:
    (line,) = report(tmp_path, recorded("root\n  k 1ms")).lines(PLAIN, summary=False, every_process=False)
    path = tmp_path / "0.bragg"
    assert line == f"Wrote {path} (1.20 kB, complete). Next: bragg view {path}"


def test_what_was_compiled_for_a_gpu_that_is_not_there_is_shown_with_its_source(tmp_path: Path) -> None:
    compiled = recorded("root\n  k 1ms", compiled_for_target={"k": {"code": "k/1"}})
    (line,) = report(tmp_path, compiled).lines(PLAIN, summary=False, every_process=False)
    assert line.endswith(f"Next: bragg source {tmp_path / '0.bragg'}")


def test_last_line_names_the_signal_that_ended_the_program(tmp_path: Path) -> None:
    ended = report(tmp_path, recorded("root\n  k 1ms", exit_code=-2))
    (line,) = ended.lines(PLAIN, summary=False, every_process=False)
    assert "(1.20 kB, complete, until SIGINT). Next" in line


def test_last_line_names_the_exit_code_of_a_program_that_failed(tmp_path: Path) -> None:
    failed = report(tmp_path, recorded("root\n  k 1ms", exit_code=2))
    (line,) = failed.lines(PLAIN, summary=False, every_process=False)
    assert "(1.20 kB, complete, exit code 2 of the program). Next" in line


def test_summary_of_the_last_phase_says_how_long_the_program_ran(tmp_path: Path) -> None:
    command = {"command": ["/usr/bin/python", "serve.py"], "started_ns": 1, "stopped_ns": 1_300_000_001}
    last = recorded("root\n  f host=1s", phase=4, **command)
    ended = replace(report(tmp_path, last), n_earlier=4, duration_s=17.0)
    title = ended.lines(PLAIN, summary=True, every_process=False)[0]
    assert title == "python serve.py ran 17.0 s; the last 1.30 s, which 0.bragg has:"
    whole = replace(report(tmp_path, recorded("root\n  f host=1s", **command)), duration_s=17.0)
    assert whole.lines(PLAIN, summary=True, every_process=False)[0] == "python serve.py ran 1.30 s"


def test_what_is_missing_is_said_without_a_summary_and_in_json_too(tmp_path: Path) -> None:
    profile = recorded("root\n  k 1ms", capture={"complete": False, "write_error": "File too large"})
    warning, last = report(tmp_path, profile).lines(PLAIN, summary=False, every_process=False)
    what = "the capture could not be written to its end"
    assert warning == f"warning: {what} (File too large), so sums are too low"
    assert f"(1.20 kB, incomplete: {what}, sums are too low)" in last
    (values,) = report(tmp_path, profile).to_json()["profiles"]
    assert values["completeness"] == f"incomplete: {what}, sums are too low"


FINDS = "; if it is one of Triton, this finds where and why: "


@pytest.mark.parametrize(
    ("command", "versions", "check"),
    [
        (["/usr/bin/python3", "k v.py", "--n", "3"], {"triton": "3.6.0"}, f"{FINDS}bragg check 'k v.py' --n 3"),
        (["/usr/bin/python3", "-m", "pkg.k"], {"triton": "3.6.0"}, f"{FINDS}bragg check -m pkg.k"),
        (["/usr/bin/python3", "-u", "k.py"], {"triton": "3.6.0"}, f"{FINDS}bragg check PROGRAM"),
        (["/usr/bin/python3", "k.py"], {"torch": "2.13.0"}, ""),
    ],
)
def test_a_kernel_that_ended_with_an_error_names_the_command_that_finds_it(
    tmp_path: Path, command: list[str], versions: dict[str, str], check: str
) -> None:
    meta = {"kernel_error": "misaligned address", "command": command, "versions": versions}
    said = f"a kernel ended with an error: misaligned address{check}"
    failed, longer = recorded("root\n  k 1ms", **meta), recorded("root\n  k 2ms", backend="cpu")
    alone = report(tmp_path, failed).lines(PLAIN, summary=False, every_process=False)
    assert alone[:-1] == [f"warning: {said}"]
    beside = report(tmp_path, longer, failed).lines(PLAIN, summary=False, every_process=False)
    assert beside[:-1] == [said]
    assert header_lines(RunFacts.of(failed), "k.bragg", PLAIN)[-1] == f"warning: {said}"


def test_next_command_can_be_pasted_whatever_the_file_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    (line,) = report(folder, profile_from_text("root\n  k 1ms")).lines(PLAIN, summary=False, every_process=False)
    assert line.endswith(f"Next: bragg view '{folder / '0.bragg'}'")


def test_every_process_is_listed_when_it_is_asked_for(tmp_path: Path) -> None:
    profile = recorded("root\n  k 1ms", pid=7, command=["/usr/bin/python3", "a.py"], backend="cpu")
    lines = report(tmp_path, profile).lines(PLAIN, summary=False, every_process=True)
    assert lines[1] == "processes that recorded nothing: 0"
    assert lines[0] == f"process 7: {tmp_path / '0.bragg'} (1.20 kB, complete, backend cpu): python3 a.py"


def test_json_names_profiles_and_hottest_kernels(tmp_path: Path) -> None:
    values = report(tmp_path, profile_from_text("root\n  k 1ms\n  j 2ms")).to_json()
    assert values["profiles"][0]["size_bytes"] == 1200
    assert [row["name"] for row in values["hottest"]["rows"]] == ["j", "k"]


def test_backend_that_was_asked_for_and_failed_everywhere_is_an_error(tmp_path: Path) -> None:
    profile = replace(profile_from_text("root\n  a host=1ms"), meta=FAILED)
    with pytest.raises(BackendUnavailable, match="GPU work was not recorded: the slot is taken"):
        report(tmp_path, profile, profile).check_backend("cuda")


@pytest.mark.parametrize("requested", ["auto", "cpu"])
def test_backend_that_was_not_asked_for_may_fail(tmp_path: Path, requested: str) -> None:
    report(tmp_path, replace(profile_from_text("root\n  a host=1ms"), meta=FAILED)).check_backend(requested)


def test_backend_that_worked_in_one_process_is_enough(tmp_path: Path) -> None:
    failed = replace(profile_from_text("root\n  a host=1ms"), meta=FAILED)
    report(tmp_path, failed, profile_from_text("root\n  k 1ms")).check_backend("cuda")


def test_the_end_of_a_run_names_what_bounds_it_and_the_best_findings(tmp_path: Path) -> None:
    profile = formats.load(SAMPLE)
    lines = report(tmp_path, profile).lines(PLAIN, summary=True, every_process=False)
    at = next(row for row, line in enumerate(lines) if line.startswith("The GPU bounds most of the program"))
    assert lines[at].endswith("waits 36 %. To save of these steps:")
    assert lines[at + 1].startswith("     34 %  matrix products in 32-bit floating point without tensor cores")
    assert lines[at + 2].strip() == "train_gpt2.py:71  loss = model(input_ids=tokens, labels=tokens).loss"
    assert "The steady state is 0.7 % of the run; of the rest imports took 12.6 s (train_gpt2.py:16)." in lines
    assert len(lines) <= 15


def test_a_run_with_a_timeline_ends_with_what_its_file_says(tmp_path: Path) -> None:
    whole = formats.load(next(path for path in RECORDINGS if "timm" in path.stem))
    # What recording returns has no slices: they are in the file alone.
    path = tmp_path / "timm.bragg"
    formats.export(whole, "bragg", path)
    summed = replace(whole, slices=SliceTable.empty())
    lines = RunReport(0, 15.7, [(path, summed)], 0, []).lines(PLAIN, summary=True, every_process=False)
    assert lines[:-1] == RunReport(0, 15.7, [(path, whole)], 0, []).lines(PLAIN, summary=True, every_process=False)[:-1]
    assert any("aten::normal_ computes on the CPU" in line for line in lines)


def test_each_finding_is_said_once_and_whole_in_a_narrow_terminal(tmp_path: Path) -> None:
    flax = formats.load(next(path for path in RECORDINGS if "flax" in path.stem))
    lines = report(tmp_path, flax).lines(Style(width=100), summary=True, every_process=False)
    said = " ".join(line.strip() for line in lines[:-1])
    assert said.count("jit__truncated_normal was compiled 3 times, 1.2 s: its calls differ in shapes") == 1
    assert lines[1] == "start 9.36 s | warm-up 2.62 s"
    assert lines[2].startswith("  | steady 835 ms (199 steps of 4.19 ms, calls of jit(train_step), GPU busy 1.4 %)")
    assert max(map(len, lines[:-1])) <= 100


def test_nothing_is_cut_in_a_terminal_of_40_columns_except_names(tmp_path: Path) -> None:
    lines = report(tmp_path, formats.load(SAMPLE)).lines(Style(width=40), summary=True, every_process=False)
    assert max(map(len, lines[:-1])) <= 40
    assert lines[-1].startswith("Next: bragg view ")
    said = " ".join(" ".join(lines).split())
    assert "| steady 101 ms (6 steps of 16.8 ms, GPU busy 64 %) | teardown 16.9 ms" in said
    assert "waits 36 %. To save of these steps: 34 % matrix products in 32-bit" in said
    header = next(at for at, line in enumerate(lines) if line.startswith("gpu_time ms    share  name"))
    assert lines[header + 1] == "      15.19   23.7 %  sm80_xmma_g…x128x8"


def test_a_table_of_sums_says_that_it_is_of_the_whole_run(tmp_path: Path) -> None:
    folder = RECORDINGS[0].parent / "pairs"
    lines = report(tmp_path, formats.load(folder / "h100-cpu_work_slow.bragg")).lines(
        PLAIN, summary=True, every_process=False
    )
    assert [line for line in lines if line.endswith("  name, in the whole run")]
    assert not [line for line in lines if "for these and the code before them" in line]
