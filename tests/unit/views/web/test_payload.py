from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bragg import formats
from bragg.analyze.causes.evidence import Evidence
from bragg.model import Metric, MetricKind, Profile
from bragg.views.web.payload import Analyses, Summary, pack
from bragg.views.web.report_payload import report_payload
from tests.support.profiles import profile_from_text
from tests.support.recordings import RECORDINGS
from tests.support.traces import trace_from_text


def header(profile: Profile, analyses: Analyses | None = None) -> dict[str, Any]:
    """The JSON part of a payload."""
    return header_of(pack(profile, analyses=analyses or Analyses()))


def header_of(payload: bytes) -> dict[str, Any]:
    packed = gzip.decompress(payload)
    size = int.from_bytes(packed[:4], "little")
    found: dict[str, Any] = json.loads(packed[4 : 4 + size])
    return found


def columns(profile: Profile) -> dict[str, Any]:
    """The table of pauses, its columns as numbers."""
    packed = gzip.decompress(pack(profile))
    start = 4 + int.from_bytes(packed[:4], "little")
    found: dict[str, Any] = json.loads(packed[4:start])["pauses"]
    return {
        name: read(packed[start + column["at"] :], column) if name != "devices" else column
        for name, column in found.items()
    }


def read(data: bytes, column: dict[str, Any]) -> list[int]:
    """Zigzag varints, as the page reads them."""
    values, at, before = [], 0, 0
    for _ in range(column["n"]):
        number = shift = 0
        while True:
            byte = data[at]
            at, number, shift = at + 1, number | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        before = (number >> 1 ^ -(number & 1)) + (before if column["code"] == "delta" else 0)
        values.append(before)
    return values


def test_equal_profiles_are_equal_bytes() -> None:
    profile = profile_from_text("root\n  a 1us")
    assert pack(profile) == pack(replace(profile))


def test_what_analyses_say_is_passed_on() -> None:
    analyses = Analyses(title="run", summary=Summary(["one"], [("host", "box")], ["all"]), code=[{"key": "k/1"}])
    found = header(profile_from_text("root\n  a 1us"), analyses)
    summary = {"sentences": ["one"], "facts": [["host", "box"]], "lacks": ["all"]}
    assert found["summary"] == {**summary, "numbers": [], "wall": None, "tables": []}
    assert (found["title"], found["code"], found["steady"]) == ("run", [{"key": "k/1"}], None)
    assert found["opens"] == {"isSteady": False, "metric": "gpu_time"}


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


def test_pauses_name_the_work_that_ends_them_and_its_launch() -> None:
    trace = trace_from_text("thread 1\n  30-40 launch ->5\nstream 7\n  0-20 a\n  60-90 b <-5\n  95-99 c")
    found = columns(trace)
    assert found["devices"] == [{"process": 42, "device": 0, "begins": 0, "span": 99, "count": 2}]
    names = [trace.tree.frames.name[trace.tree.frame[node]] for node in trace.slices.node.tolist()]
    assert [names[row] for row in found["next"]] == ["b", "c"]
    before = [row - back for row, back in zip(found["next"], found["back"], strict=True)]
    assert [names[row] for row in before] == ["a", "b"]
    assert [names[row] if row >= 0 else None for row in found["launch"]] == ["launch", None]


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
    assert (found["opens"]["metric"], found["slices"]["start"]["n"], found["kernels"]) == (None, 0, [])


def test_without_a_timeline_what_the_gpu_waited_for_opens() -> None:
    profile = formats.load(RECORDINGS[0].parent / "pairs/h100-cpu_work_slow.bragg")
    found = header_of(report_payload(profile, "waits"))
    assert found["opens"] == {"isSteady": False, "metric": "gpu_idle_time"}
    assert "gpu_idle_time" in found["metrics"]


def test_where_the_gpu_waited_the_host_of_the_steady_state_opens() -> None:
    profile = profile_from_text("root\n  warm_up host=9us\n  step host=3us\n    k 1us")
    steady = profile_from_text("root\n  warm_up\n  step host=3us\n    k 1us")
    found = header(profile, Analyses(steady=steady, opens="host_time"))
    assert found["opens"] == {"isSteady": True, "metric": "host_time"}
    n_values = [metrics["host_time"]["own"]["rows"]["n"] for metrics in (found["metrics"], found["steady"])]
    assert n_values == [2, 1]


def test_what_rules_look_at_is_computed_once_for_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Profile] = []
    begin = Evidence.__init__

    def counted(self: Evidence, profile: Profile, regions: Profile | None = None) -> None:
        made.append(profile)
        begin(self, profile, regions)

    monkeypatch.setattr(Evidence, "__init__", counted)
    report_payload(profile_from_text("root\n  a 1us"), "run")
    assert len(made) == 1


def test_without_a_gpu_what_is_no_import_opens() -> None:
    text = "root\n  <frozen importlib._bootstrap>:1@_find_and_load host=9ms\n  a.py:1@train host=3ms"
    found = header_of(report_payload(profile_from_text(text), "imports"))
    assert found["opens"] == {"isSteady": True, "metric": "host_time"}
    n_values = [metrics["host_time"]["own"]["rows"]["n"] for metrics in (found["metrics"], found["steady"])]
    assert n_values == [2, 1]
