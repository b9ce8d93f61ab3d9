from __future__ import annotations

from dataclasses import replace

from bragg.analyze.report import answered
from bragg.duration_buckets import bucket_of
from bragg.model import Finding, Severity
from bragg.views.terminal.summary import summary_lines
from bragg.views.text.style import PLAIN, Style
from tests.support.profiles import profile_from_text

META = {
    "command": ["/usr/bin/python3", "train.py"],
    "started_ns": 0,
    "stopped_ns": 12_400_000_000,
    "gpu_busy_ns": {"0": 5_000_000_000},
    "gpu_first_ns": 0,
    "gpu_last_ns": 8_000_000_000,
}


def test_summary_names_hottest_kernels_and_the_path_to_the_hottest() -> None:
    profile = profile_from_text("root\n  train.py:40@main\n    forward\n      matmul 12ms x3\n      relu 4ms x1")
    assert summary_lines(replace(profile, meta=META), PLAIN) == [
        "python3 train.py ran 12.4 s",
        "GPU 0 busy 62.5 % of the 8.00 s from first to last GPU work",
        "gpu_time ms    share            gpu_count  avg ms  name",
        "      12.00   75.0 %  ██████            3    4.00  matmul",
        "       4.00   25.0 %  ██                1    4.00  relu",
        "  12.0 ms   75.0 % of gpu_time  main train.py:40 → forward → matmul",
    ]


def test_summary_names_the_host_s_paths_where_the_gpu_waits() -> None:
    profile = profile_from_text("root\n  load host=90ms\n  k 1us host=1ms")
    lines = summary_lines(replace(profile, meta={**META, "gpu_busy_ns": {"0": 1_000_000_000}}), PLAIN)
    assert lines[-2:] == ["  90.0 ms   98.9 % of host_time  load", "  1.00 ms    1.1 % of host_time  k"]


def test_summary_of_a_host_program_names_its_hottest_paths() -> None:
    profile = profile_from_text("root\n  a.py:1@main host=1ms\n    a.py:2@work host=9ms\n    idle")
    assert summary_lines(profile, PLAIN) == [
        "the program ran",
        "  9.00 ms   90.0 % of host_time  main a.py:1 → work a.py:2",
        "  1.00 ms   10.0 % of host_time  main a.py:1",
    ]


def test_outermost_callers_are_left_out_where_there_is_no_room() -> None:
    profile = profile_from_text("root\n  a.py:1@main\n    a.py:2@work\n      kernel 9ms")
    assert summary_lines(profile, Style(width=60))[-1] == "  9.00 ms  100.0 % of gpu_time  … → work a.py:2 → kernel"


def test_the_innermost_line_of_the_program_stays_where_there_is_no_room() -> None:
    torch = "/lib/python3.12/site-packages/torch/nn/modules/linear.py:134@Linear.forward"
    text = f"root\n  a.py:1@main\n    a.py:2@Block.forward\n      {torch}\n        aten::linear host=9ms"
    (line,) = summary_lines(profile_from_text(text), Style(width=80))[1:]
    assert line == "  9.00 ms  100.0 % of host_time  … → Block.forward a.py:2 → … → aten::linear"
    (line,) = summary_lines(profile_from_text(text), Style(width=60))[1:]
    assert line == "  9.00 ms  100.0 % of host_time  … → aten::linear"


def test_findings_without_a_known_gain_are_named() -> None:
    found = Finding("graph-breaks", Severity.NOTE, "20 parts go through Python", "fullgraph=True", file="a.py", line=7)
    profile = replace(profile_from_text("root\n  a.py:7@main host=9ms"), meta=META, carried=[found])
    lines = summary_lines(profile, PLAIN, answered(profile))
    at = next(number for number, line in enumerate(lines) if line.endswith(" Found:"))
    assert [line.strip() for line in lines[at + 1 : at + 3]] == [
        "20 parts go through Python (a.py:7)",
        "Change: fullgraph=True",
    ]
    assert not any("No rule found" in line for line in lines)


def test_summary_of_everything_has_at_most_thirteen_lines() -> None:
    kernels = "".join(f"  kernel_{number} {number + 1}ms host=1ms sync=1ms\n" for number in range(20))
    losses = {"bad_timestamps": 1, "unattributed_records": 1, "refused_nodes": 1, "dropped_events": 1}
    meta = {**META, "gpu_busy_ns": {"0": 1, "1": 1}, "statistics": losses}
    lines = summary_lines(replace(profile_from_text(f"root\n{kernels}"), meta=meta), PLAIN)
    assert len(lines) == 13
    assert any(line.startswith("the host waited 20.0 ms") for line in lines)
    assert lines[-1] == "warning: 3 more warnings: bragg info shows all"


def test_profile_without_time_is_said() -> None:
    lines = summary_lines(profile_from_text("root\n  a bytes=3"), PLAIN)
    assert lines == ["the program ran", "neither GPU time nor host time was recorded"]


def test_summary_tells_of_training_steps() -> None:
    times = {"count": 2, "total_ns": 20_000_000, "in_steps_ns": 14_000_000, "buckets": {}}
    profile = profile_from_text("root\n  torch: data host=14ms")
    with_steps = replace(profile, meta={**META, "regions": {"step": times, "data": times}})
    assert summary_lines(with_steps, PLAIN)[1] == "2 steps of 10.0 ms: data 70.0 %, other 30.0 %"
    calls = {"step of jit(f)": {**times, "in_steps_ns": 20_000_000, "called_ns": 3}}
    assert summary_lines(replace(profile, meta={**META, "regions": calls}), PLAIN)[1] == (
        "2 steps of 10.0 ms, calls of jit(f)"
    )
    damaged = replace(profile, meta={**META, "regions": {"step": 5}})
    assert summary_lines(damaged, PLAIN)[1:] == summary_lines(replace(profile, meta=META), PLAIN)[1:]


def test_one_slow_step_makes_no_average() -> None:
    fast, slow = str(bucket_of(10_000_000)), str(bucket_of(900_000_000))
    step = {"count": 10, "total_ns": 990_000_000, "in_steps_ns": 990_000_000, "buckets": {fast: 9, slow: 1}}
    data = {
        "count": 10,
        "total_ns": 950_000_000,
        "in_steps_ns": 950_000_000,
        "buckets": {str(bucket_of(5_000_000)): 10},
    }
    meta = {**META, "regions": {"step": step, "data": data}}
    line = summary_lines(replace(profile_from_text("root\n  k 1us"), meta=meta), PLAIN)[1]
    assert line == "10 steps of 99.0 ms; the median one of 10.2 ms: data 50.0 %, other 50.0 %"
    several = {**data, "count": 20, "buckets": {str(bucket_of(5_000_000)): 20}}
    meta = {**META, "regions": {"step": step, "data": several}}
    line = summary_lines(replace(profile_from_text("root\n  k 1us"), meta=meta), PLAIN)[1]
    assert line == "10 steps of 99.0 ms: data 96.0 %, other 4.0 %"


def test_imports_of_a_host_program_are_a_sentence_before_what_it_did() -> None:
    text = """root
  a.py:1@main host=10ms
    <frozen importlib._bootstrap>:1@_find_and_load
      torch.py:1@<module> host=60ms
    a.py:2@work host=30ms"""
    assert summary_lines(profile_from_text(text), PLAIN)[1:] == [
        "imports took 60.0 ms, 60.0 % of host_time; of the other 40.0 ms:",
        "  30.0 ms   75.0 % of it  main a.py:1 → work a.py:2",
        "  10.0 ms   25.0 % of it  main a.py:1",
    ]


def test_paths_that_took_next_to_nothing_are_not_listed_unless_there_are_no_others() -> None:
    text = "root\n  a.py:1@work host=9s\n  a.py:2@rest host=100ms\n  a.py:3@exit host=80ms"
    assert [line.split()[-2] for line in summary_lines(profile_from_text(text), PLAIN)[1:]] == ["work", "rest"]


def test_imports_that_took_little_are_no_row_and_no_sentence() -> None:
    text = """root
  <frozen importlib._bootstrap>:1@_find_and_load
    torch.py:1@<module> host=900us
  a.py:2@work host=99100us"""
    assert summary_lines(profile_from_text(text), PLAIN)[1:] == ["  99.1 ms   99.1 % of host_time  work a.py:2"]


def test_imports_are_all_of_a_program_that_does_nothing_else() -> None:
    text = "root\n  <frozen importlib._bootstrap>:1@_find_and_load host=9ms"
    assert [line.split()[:4] for line in summary_lines(profile_from_text(text), PLAIN)[1:]] == [
        ["9.00", "ms", "100.0", "%"]
    ]


def test_a_program_that_mostly_waits_says_so_first() -> None:
    lines = summary_lines(profile_from_text("root\n  a.py:1@work host=9ms\n  a.py:2@read host=90ms wait=90ms"), PLAIN)
    assert lines[1].startswith("the main thread waited 90.0 ms, 90.9 % of its time")
    assert lines[2].endswith("work a.py:1")


def test_a_program_that_imports_and_waits_says_what_shares_are_of_right_above_them() -> None:
    text = """root
  <frozen importlib._bootstrap>:1@_find_and_load
    torch.py:1@<module> host=60ms
  a.py:1@work host=9ms
  a.py:2@read host=90ms wait=90ms"""
    lines = summary_lines(profile_from_text(text), PLAIN)
    assert [line.split()[0] for line in lines[1:4]] == ["the", "imports", "9.00"]


def test_reading_the_clocks_inside_kernels_is_not_what_took_the_time() -> None:
    text = "root\n  <clocks inside kernels> #state\n    copy DtoH 90ms\n  train.py:40@main\n    matmul 9ms x3"
    lines = summary_lines(profile_from_text(text), PLAIN)
    assert [line.split()[-1] for line in lines if "█" in line] == ["matmul"]
