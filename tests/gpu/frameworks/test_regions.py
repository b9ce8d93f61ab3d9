from __future__ import annotations

from collections.abc import Callable

import pytest

from bragg.grouping.regions import group_by_region
from bragg.model import Profile
from tests.gpu.conftest import Recorded

pytestmark = pytest.mark.cuda
Run = Callable[..., Recorded]
STEPS = 10


def rows(profile: Profile, metric: str) -> dict[str, float]:
    """Of each region; the root is a step."""
    grouped = group_by_region(profile)
    values = grouped.own(metric).tolist()
    return {grouped.tree.label(node) or "step": values[node] for node in range(len(values))}


def test_regions_have_the_same_gpu_time_with_operators_and_without(run: Run) -> None:
    alone = run("training.py", "--regions", "all", "--framework", "off").profile
    beside = run("training.py", "--regions", "all", "--framework", "torch").profiles[-1]
    for profile in (alone, beside):
        calls = rows(profile, "region_calls")
        assert [calls[name] for name in ("step", "data", "forward", "backward", "optimizer")] == [
            STEPS,
            0,
            *[STEPS] * 3,
        ]
    times, with_operators = rows(alone, "gpu_time"), rows(beside, "gpu_time")
    for name in ("forward", "backward", "optimizer"):
        assert times[name] > 0
        assert with_operators[name] == pytest.approx(times[name], rel=0.05)
    # Two products of matrices forward, three backward: the input needs no gradient.
    assert times["backward"] / times["forward"] == pytest.approx(1.5, abs=0.2)
