from __future__ import annotations

import numpy as np

from bragg.duration_buckets import bucket_of
from bragg.model import DurationTable
from bragg.model.durations import bucket_range, buckets_of

TIMES = [0, 1, 15, 16, 17, 31, 32, 1000, 123_456_789, 2**62]


def test_a_duration_lies_in_its_bucket() -> None:
    low, high = bucket_range(buckets_of(np.array(TIMES)))
    assert all(first <= time < last for first, time, last in zip(low, TIMES, high, strict=True))
    assert bucket_range(np.array([15, 16, 32, 48], np.int32))[0].tolist() == [15, 16, 32, 64]


def test_one_duration_has_the_bucket_that_it_has_among_many() -> None:
    assert [bucket_of(time) for time in TIMES] == buckets_of(np.array(TIMES)).tolist()


def test_quantiles_are_those_of_each_row_and_unknown_where_nothing_ran() -> None:
    frame, bucket = np.array([2, 0, 0], np.int32), np.array([5, 9, 3], np.int32)
    durations = DurationTable(frame, bucket, np.array([1, 1, 3]), np.zeros(3, np.int64))
    np.testing.assert_array_equal(durations.quantiles(0.5, 3), [3, np.nan, 5])
    np.testing.assert_array_equal(durations.quantiles(0.95, 3), [9, np.nan, 5])
    np.testing.assert_array_equal(durations.take(frame > 2).quantiles(0.5, 1), [np.nan])
