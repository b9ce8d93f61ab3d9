from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import numpy as np

from bragg.model import Metric, MetricKind, Profile, TrackKind
from bragg.model.host_time import THREAD_TIME, of_launching_thread, of_main_thread, own_host_time, own_work
from tests.support.profiles import profile_from_text
from tests.support.stepped import launched, stepped


def inclusive(text: str, measured: dict[str, int], sampled: dict[str, int]) -> dict[str, int]:
    tree = profile_from_text(dedent(text)).tree
    labels = [tree.label(node) for node in range(len(tree))]
    column = {
        name: np.array([values.get(label, 0) for label in labels])
        for name, values in {"measured": measured, "sampled": sampled}.items()
    }
    is_measured = np.array([label in measured for label in labels])
    own = own_host_time(tree, column["measured"], is_measured, column["sampled"])
    return dict(zip(labels, tree.sum_up(own).tolist(), strict=True))


def test_a_measured_scope_has_its_measured_time_whatever_was_sampled_inside() -> None:
    assert inclusive("root\n  scope\n    a.py:1@f", {"scope": 10}, {"a.py:1@f": 4}) == {
        "root": 10,
        "scope": 10,
        "a.py:1@f": 4,
    }


def test_a_scope_whose_children_exceed_it_has_their_time() -> None:
    assert inclusive("root\n  scope\n    a.py:1@f", {"scope": 3}, {"a.py:1@f": 4})["scope"] == 4


def test_samples_at_a_line_that_calls_an_operator_are_the_operators() -> None:
    text = "root\n  a.py:1@f\n    aten::mm #operator"
    assert inclusive(text, {"aten::mm": 8}, {"a.py:1@f": 6})["a.py:1@f"] == 8
    assert inclusive(text, {"aten::mm": 8}, {"a.py:1@f": 11})["a.py:1@f"] == 11


def test_samples_inside_of_a_scope_are_not_taken_from_the_line_that_enters_it() -> None:
    text = "root\n  a.py:1@f\n    scope\n      b.py:2@g"
    times = inclusive(text, {"scope": 8}, {"a.py:1@f": 6, "b.py:2@g": 7})
    assert times == {"root": 13, "a.py:1@f": 13, "scope": 8, "b.py:2@g": 7}


def test_samples_in_called_functions_add_up() -> None:
    text = "root\n  a.py:1@f\n    b.py:2@g"
    assert inclusive(text, {}, {"a.py:1@f": 6, "b.py:2@g": 5})["root"] == 11


def test_a_state_that_was_measured_elsewhere_is_no_part_of_the_operator_above_it() -> None:
    text = "root\n  a.py:1@f\n    aten::mm #operator\n      [backward] #state\n        aten::t #operator"
    times = inclusive(text, {"aten::mm": 8, "[backward]": 20, "aten::t": 5}, {"a.py:1@f": 6})
    assert times == {"root": 28, "a.py:1@f": 28, "aten::mm": 28, "[backward]": 20, "aten::t": 5}
    assert inclusive(text, {"aten::mm": 8, "[backward]": 20, "aten::t": 5}, {"a.py:1@f": 9})["a.py:1@f"] == 29


WAITS = "root\n  a.py:1@f\n    [waiting] #state"


def test_what_is_waited_stands_beside_the_work_of_the_line() -> None:
    times = inclusive(WAITS, {}, {"a.py:1@f": 3, "[waiting]": 7})
    assert times == {"root": 10, "a.py:1@f": 10, "[waiting]": 7}


def test_what_a_measured_operator_waits_is_the_operators() -> None:
    text = f"{WAITS}\n    aten::item #operator"
    times = inclusive(text, {"aten::item": 7}, {"a.py:1@f": 2, "[waiting]": 7})
    assert times == {"root": 9, "a.py:1@f": 9, "aten::item": 7, "[waiting]": 0}
    times = inclusive(text, {"aten::item": 7}, {"a.py:1@f": 2, "[waiting]": 12})
    assert times == {"root": 14, "a.py:1@f": 14, "aten::item": 7, "[waiting]": 5}


def test_a_measured_scope_has_no_more_than_its_time_whatever_was_waited_inside() -> None:
    text = "root\n  scope\n    [waiting] #state\n    a.py:1@f"
    assert inclusive(text, {"scope": 10}, {"[waiting]": 4, "a.py:1@f": 3}) == {
        "root": 10,
        "scope": 10,
        "[waiting]": 4,
        "a.py:1@f": 3,
    }
    assert inclusive(text, {"scope": 5}, {"[waiting]": 4, "a.py:1@f": 3})["[waiting]"] == 2


def test_places_are_hot_by_what_they_do_and_not_by_what_they_wait_for() -> None:
    profile = profile_from_text("root\n  a.py:1@f 1ms host=3ms\n    [waiting] #state host=7ms wait=7ms")
    assert own_work(profile, "host_time").tolist() == [0.0, 3e6, 0.0]
    assert own_work(profile, "gpu_time").tolist() == [0.0, 1e6, 0.0]


def test_the_main_threads_time_is_that_without_other_threads() -> None:
    profile = profile_from_text("root\n  main host=5us\n  worker host=3us")
    of_worker = np.array([name == "worker" for name in profile.tree.frames.name])[profile.tree.frame]
    threads = Metric(THREAD_TIME, "ns", MetricKind.INCLUSIVE, np.where(of_worker, 3000, 0))
    both = replace(profile, metrics={**profile.metrics, THREAD_TIME: threads})
    assert both.total("host_time") == 8000
    assert of_main_thread(both).total("host_time") == 5000
    assert of_main_thread(both).total(THREAD_TIME) == 3000
    assert of_main_thread(profile) is profile


THREAD = "/lib/python3.12/threading.py:1030@Thread._bootstrap > serve.py:4@infer"


def of_threads(launching: str) -> Profile:
    """One whose main thread waits for 3 us a step, and another one runs for 2 us."""
    text = "samples 0-3 serve.py:12@main\nother 3-5 " + THREAD
    return stepped(f"{text}\n{launched(1, launching, 'gemm', 1, 1, 6)}", 20, 1)


def sampled(profile: Profile) -> list[str]:
    is_sample = (profile.tracks.kind == TrackKind.SAMPLES)[profile.slices.track]
    return [profile.tree.label(node) for node in profile.slices.node[is_sample].tolist()]


def test_the_host_is_the_thread_that_launches() -> None:
    by_main, by_other = of_threads("serve.py:13@main"), of_threads(THREAD)
    assert sampled(of_launching_thread(by_main)) == ["serve.py:12@main"]
    assert of_launching_thread(by_main).total("host_time") == 4_000 + 1_000  # of the launch and the optimizer
    assert sampled(of_launching_thread(by_other)) == ["serve.py:4@infer"]
    assert of_launching_thread(by_other).total("host_time") == 2_000 + 4_000 + 1_000
    assert sampled(of_main_thread(by_other)) == ["serve.py:12@main"]
