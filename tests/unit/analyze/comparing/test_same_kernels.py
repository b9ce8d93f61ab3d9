"""Kernels that both sides of a comparison launched alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.comparing.same_kernels import same_kernels
from bragg.model import KernelTable, Profile
from tests.support.profiles import profile_from_text

N_LAUNCHES = 50


def run(means_us: Sequence[float], grids: Sequence[int] = ()) -> Profile:
    """Kernels k0, k1, …, each 50 times with one shape."""
    lines = [f"  k{i} {round(N_LAUNCHES * us)}us x{N_LAUNCHES} @0" for i, us in enumerate(means_us)]
    profile = profile_from_text("\n".join(["root", *lines]))
    frames = np.array([profile.tree.frames.name.index(f"k{i}") for i in range(len(means_us))])
    n = len(means_us)
    columns = {name: np.ones(n, np.int64) for name in KernelTable.columns()}
    columns |= {"frame": frames, "grid_x": np.array(grids or [64] * n)}
    return replace(profile, kernels=KernelTable(**columns))


def test_kernels_of_the_same_shape_that_all_take_longer_are_the_machines_doing() -> None:
    found = same_kernels([run([10, 20, 30, 40, 50, 500])], [run([12, 24, 36, 48, 60, 50])])
    assert found is not None
    assert found.count == 5
    assert found.change == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("after", "grids"),
    [
        ([10, 20, 30, 40, 50], ()),
        ([10.5, 21, 31.5, 42, 52.5], ()),  # 5 %
        ([5, 10, 15, 20, 25], [32] * 5),  # half the data
        ([10, 20, 15, 20, 50], ()),  # two of them
        ([5, 13, 21, 32, 49], ()),  # each by its own
        ([12, 24, 36, 48], ()),  # few
    ],
)
def test_kernels_that_changed_each_by_itself_are_the_programs_doing(after: list[float], grids: list[int]) -> None:
    before = [10, 20, 30, 40, 50][: len(after)]
    assert same_kernels([run(before)], [run(after, grids)]) is None
