"""Any profile, whatever its file says of the run, becomes a page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bragg.model import Profile
from bragg.views.web.report_payload import report_payload
from tests.support.random_profiles import profiles

SAID_OF_RUNS = (
    *("devices", "merged", "statistics", "cuda", "capture", "lost", "versions", "command"),
    *("gpu_busy_ns", "gpu_first_ns", "gpu_last_ns", "started_ns", "stopped_ns", "host", "recorder"),
    *("attributes", "kernel_code", "interpreted_launches", "sampling"),
)
scalars = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats() | st.text(max_size=4)
keys = st.sampled_from(["0", "name", "arch", "num_sms", "work_ns", "state", "dropped_events", "bytes_lost", "x"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)


@settings(max_examples=60)
@given(profiles(), st.dictionaries(st.sampled_from(SAID_OF_RUNS), values, max_size=5))
def test_any_profile_becomes_a_payload(profile: Profile, meta: dict[str, Any]) -> None:
    assert report_payload(replace(profile, meta=meta), "x")[:2] == b"\x1f\x8b"
