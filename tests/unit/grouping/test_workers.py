from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.errors import UsageError
from bragg.grouping.processes import group_by_process
from bragg.grouping.workers import WORKER_TIME, WORKERS, is_loader_worker, with_workers
from bragg.model import FrameKind, Profile
from bragg.views.text.waiting import waiting_lines
from tests.support.profiles import profile_from_text

LOOP = "/site-packages/torch/utils/data/_utils/worker.py:9@_worker_loop"
COMPLETE = {"statistics": {}, "capture": {"complete": True}}
WORKER = f"""root
  train.py:17@<module>
    {LOOP}
      train.py:9@__getitem__ host=30ms hostx2
      wait host=10ms wait=10ms
  threading.py:1@_feed host=1ms"""


def worker(pid: int, text: str = WORKER) -> Profile:
    return replace(profile_from_text(text), meta={**COMPLETE, "pid": pid, "ppid": 1, "started_ns": pid})


def training() -> Profile:
    profile = profile_from_text("root\n  train.py:17@<module>\n    step host=100ms\n      matmul 50us x5")
    return replace(profile, meta={**COMPLETE, "pid": 1, "started_ns": 5, "stopped_ns": 100_000_005})


def names_below(profile: Profile, node: int) -> list[str]:
    return [profile.tree.frames.name[profile.tree.frame[child]] for child in profile.tree.children(node)]


def test_workers_are_known_by_the_function_they_run() -> None:
    assert is_loader_worker(worker(2))
    assert not is_loader_worker(training())
    assert not is_loader_worker(worker(2, WORKER + "\n  k 5us"))
    unfinished = replace(worker(2), meta={**COMPLETE, "capture": {"complete": False}})
    assert not is_loader_worker(unfinished)


def test_workers_stand_in_the_profile_of_their_parent_with_a_time_of_their_own() -> None:
    before = training()
    profile = with_workers(before, [worker(2), worker(3)])
    profile.check()
    assert profile.total("host_time") == before.total("host_time")
    assert profile.total("gpu_time") == before.total("gpu_time")
    assert profile.total(WORKER_TIME) == 82e6
    assert profile.total("worker_wait") == 20e6
    scope = next(node for node in profile.tree.children(0) if profile.tree.label(node) == WORKERS)
    assert names_below(profile, scope) == ["worker.1", "worker.2"]
    first = profile.tree.children(scope)[0]
    assert sorted(names_below(profile, first)) == ["_feed", "_worker_loop"]
    assert {key: value for key, value in profile.meta.items() if key != "workers"} == before.meta
    assert [run.pid for run in profile.run.workers] == [2, 3]
    assert not profile.run.is_merged


def test_processes_are_rows_with_one_metric_for_all() -> None:
    rows = group_by_process(with_workers(training(), [worker(2), worker(3)]))
    rows.check()
    assert names_below(rows, 0) == ["main process, pid 1", "data loader worker 1, pid 2", "data loader worker 2, pid 3"]
    assert rows.inclusive("host_time").tolist() == [182e6, 100e6, 41e6, 41e6]
    assert rows.inclusive("gpu_time").tolist() == [50e3, 50e3, 0, 0]
    assert set(rows.tree.kind.tolist()) == {FrameKind.ROOT, FrameKind.SCOPE}
    with pytest.raises(UsageError, match="this profile is of one process"):
        group_by_process(training())


def test_a_sentence_tells_of_workers() -> None:
    line = waiting_lines(with_workers(training(), [worker(2), worker(3)]))[-1]
    assert line == "2 data loader workers ran 82.0 ms beside, 24.4 % of it waiting: bragg view --group-by process"
