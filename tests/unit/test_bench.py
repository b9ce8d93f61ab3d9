from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.bench import _require_all_records, _union_ns
from bragg.errors import BackendUnavailable

INTERVALS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=20)


@given(INTERVALS, st.integers(0, 1_800_000_000_000_000_000))
def test_time_of_a_run_is_the_number_of_moments_that_its_intervals_cover(
    intervals: list[tuple[int, int, int]], epoch_ns: int
) -> None:
    covered = {(run, moment) for run, start, length in intervals for moment in range(start, start + length)}
    run, start_ns, duration_ns = np.array(intervals, np.int64).T
    expected = [sum(of == number for of, _ in covered) for number in range(5)]
    assert _union_ns(run, start_ns + epoch_ns, duration_ns, 5).tolist() == expected


def test_a_gpu_that_came_up_and_could_not_be_recorded_is_an_error() -> None:
    meta = {"cuda": {"state": "failed", "reason": "another tool holds CUPTI"}}
    with pytest.raises(BackendUnavailable, match="another tool holds CUPTI"):
        _require_all_records(meta)
