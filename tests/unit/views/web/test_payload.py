from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import numpy as np

from bragg.model import Metric, MetricKind, Profile, Severity
from bragg.model.finding import Finding
from bragg.views.web.payload import Analyses, Summary, pack
from tests.support.profiles import profile_from_text
from tests.support.traces import trace_from_text


def header(profile: Profile, analyses: Analyses | None = None) -> dict[str, Any]:
    """The JSON part of a payload."""
    packed = gzip.decompress(pack(profile, analyses=analyses or Analyses()))
    size = int.from_bytes(packed[:4], "little")
    found: dict[str, Any] = json.loads(packed[4 : 4 + size])
    return found


def test_equal_profiles_are_equal_bytes() -> None:
    profile = profile_from_text("root\n  a 1us")
    assert pack(profile) == pack(replace(profile))


def test_what_analyses_say_is_passed_on() -> None:
    analyses = Analyses(title="run", summary=Summary(["one"], [("host", "box")], ["all"]), code=[{"key": "k/1"}])
    found = header(profile_from_text("root\n  a 1us"), analyses)
    assert found["summary"] == {"sentences": ["one"], "facts": [["host", "box"]], "lacks": ["all"]}
    assert (found["title"], found["code"], found["mainMetric"]) == ("run", [{"key": "k/1"}], "gpu_time")


def test_json_has_no_nan() -> None:
    profile = profile_from_text("root\n  a 1us")
    odd = Metric("odd", "1", MetricKind.INCLUSIVE, np.array([np.nan, np.inf]))
    found = header(replace(profile, meta={"x": [float("nan"), 1.5]}, metrics={"odd": odd}))
    assert found["meta"] == {"x": [None, 1.5]}
    assert found["metrics"]["odd"]["own"]["rows"]["n"] == 0


def test_labels_are_written_where_they_differ_from_names() -> None:
    found = header(profile_from_text("root\n  matmul 1us\n  _ZN2at6native4axpyEv 2us"))
    assert found["frames"]["names"] == ["root", "matmul", "_ZN2at6native4axpyEv"]
    assert set(found["frames"]["labels"]) == {"0", "2"}


def test_findings_carry_their_severity_by_name() -> None:
    finding = Finding("rule", Severity.WARNING, "slow", node=1)
    found = header(replace(profile_from_text("root\n  a 1us"), carried=[finding]))
    assert found["findings"] == [
        {"rule": "rule", "severity": "warning", "message": "slow", "hint": "", "node": 1, "confidence": 1},
    ]


def test_texts_of_kernels_are_not_written_twice() -> None:
    sources = {"train.py": "pass", "kernel:matmul/1.ptx": "mov"}
    found = header(replace(profile_from_text("root\n  a 1us"), sources=sources))
    assert found["sources"] == {"train.py": "pass"}


def test_correlation_ids_beyond_32_bits_are_numbered_anew() -> None:
    trace = trace_from_text("thread 1\n  0-9 step\n  1-2 launch ->5\nstream 7\n  3-4 matmul <-5")
    large = trace.slices.replace(correlation=trace.slices.correlation * 2**40)
    packed = [gzip.decompress(pack(replace(trace, slices=slices))) for slices in (trace.slices, large)]
    assert len(packed[0]) == len(packed[1])
    assert header(replace(trace, slices=large))["flows"]["source"]["n"] == 1


def test_profile_of_one_node_has_no_main_metric() -> None:
    found = header(profile_from_text("root"))
    assert (found["mainMetric"], found["slices"]["start"]["n"], found["kernels"]) == (None, 0, [])
