"""bragg beside other tools that use CUPTI in the same process: from 13.3 on several may, by version 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bragg import load
from tests.support import fake_cuda
from tests.support.fake_gpu_runs import Record, Run, kernels, statistics

REFUSED = 39  # CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
OTHERS = """
from cupti_subscriber import Subscriber
def launch(n):
    for _ in range(n): gpu.launch("k")
    gpu.synchronize()
"""
TWO_OTHERS = """
others = [Subscriber("torch.profiler"), Subscriber("a third one")]
print([other.result for other in others])
for other in others: other.collect()
launch(30_000)
others[0].flush()
print([other.kernels for other in others])
"""


def subscription(run: Run) -> int:
    """The version that bragg recorded by."""
    return int(run.main.meta["cuda"]["subscription"])


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAGG_CUPTI_SHARED", "1")


@pytest.mark.parametrize("version", ["13.3", "13.4", "13.5"])
@pytest.mark.usefixtures("shared")
def test_three_subscribers_have_every_record_each(record: Record, version: str) -> None:
    run = record(OTHERS + TWO_OTHERS, CUPTI_VERSION=version)
    assert run.output == "[0, 0]\n[30000, 30000]\n"
    assert kernels(run.main) == {"k": 30_000}
    assert subscription(run) == 2
    assert run.main.meta["cuda"]["dropped_records"] == 0
    assert statistics(run)["unattributed_records"] == 0


@pytest.mark.usefixtures("shared")
def test_a_subscriber_that_comes_or_goes_disturbs_none(record: Record) -> None:
    body = """
    launch(10)
    other = Subscriber("other")
    other.collect()
    launch(20)
    other.flush()
    other._cupti.cuptiUnsubscribe(other._handle)
    launch(30)
    print(other.kernels)
    """
    run = record(OTHERS + TWO_OTHERS.replace("30_000", "1000") + body.replace("\n    ", "\n"), CUPTI_VERSION="13.3")
    assert run.output.splitlines()[-1] == "20"
    assert kernels(run.main) == {"k": 1060}


def test_alone_it_is_version_1_beside_which_another_is_refused(record: Record) -> None:
    run = record(OTHERS + 'print(Subscriber("other").result); launch(10)', CUPTI_VERSION="13.3")
    assert run.output == f"{REFUSED}\n"
    assert (kernels(run.main), subscription(run)) == ({"k": 10}, 1)


@pytest.mark.usefixtures("shared")
def test_where_the_driver_allows_one_subscriber_alone_it_is_version_1(record: Record) -> None:
    run = record(OTHERS + 'print(Subscriber("other").result); launch(10)', CUPTI_VERSION="13.3", NO_SHARING=1)
    assert run.output == f"{REFUSED}\n"
    assert (kernels(run.main), subscription(run)) == ({"k": 10}, 1)


AFTER_VERSION_1 = """
from fake_cuda import FakeCuda
from cupti_subscriber import Subscriber
import bragg
gpu = FakeCuda()
with bragg.profile("first.bragg", backend="cuda", context="shadow"):
    gpu.launch("k")
    gpu.synchronize()
other = Subscriber("Other Profiler")
print(other.result)
with bragg.profile("second.bragg", backend="cuda", context="shadow"), bragg.scope("work"):
    gpu.launch("k")
    gpu.synchronize()
"""


def test_after_version_1_a_holder_of_version_2_is_not_joined_and_that_is_said(
    tmp_path: Path, fakes_directory: Path
) -> None:
    done = beside(AFTER_VERSION_1, tmp_path, fakes_directory, "")
    assert (done.returncode, done.stdout) == (0, "0\n")
    assert "no GPU times: CUPTI was used by version 1 before" in done.stderr
    assert kernels(load(tmp_path / "first.bragg")) == {"k": 1}


def beside(program: str, directory: Path, fakes: Path, choice: str) -> subprocess.CompletedProcess[str]:
    """Run a program that records itself, with BRAGG_CUPTI_SHARED."""
    environ = {
        **os.environ,
        **fake_cuda.environment(fakes, {"CUPTI_VERSION": "13.3"}),
        "PYTHONPATH": str(Path(fake_cuda.__file__).parent),
        "BRAGG_CUPTI_SHARED": choice,
    }
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environ, cwd=directory, capture_output=True, text=True, timeout=60, check=False)


COMES_FIRST = """
from fake_cuda import FakeCuda
from cupti_subscriber import Subscriber
gpu = FakeCuda()
other = Subscriber("Other Profiler")
other.collect()
import bragg
with bragg.profile("out.bragg", backend="cuda", context="shadow"):
    for _ in range(100): gpu.launch("k")
    gpu.synchronize()
other.flush()
print(other.kernels)
"""


@pytest.mark.parametrize("choice", ["", "0"])
def test_a_holder_of_version_2_is_joined_unless_the_user_says_no(
    tmp_path: Path, fakes_directory: Path, choice: str
) -> None:
    done = beside(COMES_FIRST, tmp_path, fakes_directory, choice)
    if choice == "0":
        assert "another tool holds the only CUPTI subscription (CUPTI for Other Profiler)" in done.stderr
        return
    assert (done.returncode, done.stdout) == (0, "100\n")
    profile = load(tmp_path / "out.bragg")
    assert (kernels(profile), profile.meta["cuda"]["subscription"]) == ({"k": 100}, 2)


@pytest.mark.usefixtures("shared")
def test_below_13_3_sharing_is_not_tried(record: Record) -> None:
    run = record("gpu.launch('k'); gpu.synchronize()", CUPTI_VERSION="13.2")
    assert (kernels(run.main), subscription(run)) == ({"k": 1}, 1)


@pytest.mark.usefixtures("shared")
def test_where_cupti_is_shared_graphs_are_recorded_by_their_nodes(record_graphs: Record) -> None:
    run = record_graphs("replay(gpu.instantiate(captured('a', 'b')), 3)", CUPTI_VERSION="13.3", graphs="graph")
    assert "another tool may want the nodes" in run.talk
    assert run.main.meta["cuda"]["graphs"] == "node"
    assert statistics(run)["kernels"] == 6


@pytest.mark.parametrize("choice", ["0", "1"])
def test_nothing_is_flushed_in_the_background_under_the_hardware_event_system(
    record: Record, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    monkeypatch.setenv("BRAGG_CUPTI_SHARED", choice)
    body = "import time; launch(10); time.sleep(1.2); launch(10)"
    run = record(OTHERS + body, CUPTI_VERSION="13.4", HARDWARE_TRACE=1)
    assert (run.exit_code, kernels(run.main)) == (0, {"k": 20})
