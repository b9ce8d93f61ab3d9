from __future__ import annotations

import numpy as np
import pytest

from bragg.model import Profile
from tests.gpu.conftest import Recorded, names_above, record

pytestmark = pytest.mark.cuda
DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(tmp_path_factory.mktemp("values"), "metric_values.py", "--context", "shadow")


def total(profile: Profile, metric: str, under: str = "values") -> float:
    """Sum of a metric's own values below frames of a name."""
    own = np.nan_to_num(profile.own(metric))
    return sum(own[node].item() for node in np.flatnonzero(own) if under in names_above(profile, node))


@pytest.mark.parametrize("dtype", DTYPES)
def test_value_is_read_as_its_dtype_says(recorded: Recorded, dtype: str) -> None:
    first = 1.5 if "float" in dtype else 1
    last = 1 if dtype == "bool" else 4
    profile = recorded.profile
    assert total(profile, f"{dtype} scalar") == first
    assert [total(profile, f"{dtype} strided[{i}]") for i in range(2)] == [1 if dtype == "bool" else 2, last]


def test_recording_does_not_wait_for_the_gpu(recorded: Recorded) -> None:
    recorded_ms, waited_ms = map(float, recorded.stdout.splitlines()[0].split())
    assert recorded_ms < waited_ms / 2
    assert total(recorded.profile, "loss") == 0.75


def test_memory_may_be_freed_at_once(recorded: Recorded) -> None:
    assert total(recorded.profile, "freed") == sum(range(500))


def test_values_of_several_streams_are_all_counted(recorded: Recorded) -> None:
    assert total(recorded.profile, "streams") == sum(first + i for first in range(4) for i in range(1000))


def test_value_in_a_graph_belongs_to_each_launch(recorded: Recorded) -> None:
    assert total(recorded.profile, "replayed", under="first") == sum(range(1, 101))
    assert total(recorded.profile, "replayed", under="second") == sum(range(101, 111))
    assert total(recorded.profile, "replayed", under="<captured_at>") == sum(range(1, 111))


def test_sums_stay_exact_when_values_come_faster_than_they_are_collected(recorded: Recorded) -> None:
    assert [total(recorded.profile, f"flood[{i}]") for i in (0, 255, 256, 4095)] == [5000.0] * 4


def test_kernels_that_read_values_are_not_the_programs(recorded: Recorded) -> None:
    assert not any("bragg_read" in name for name in recorded.profile.tree.frames.name)
    assert recorded.profile.meta["statistics"]["metric_kernels"] > 5000
