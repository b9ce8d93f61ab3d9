from __future__ import annotations

from dataclasses import replace

from bragg.views.text.waiting import waiting_lines
from tests.support.profiles import profile_from_text

WAITS = """
root
  train.py:40@main host=59ms
    train.py:31@train_step
      /x/lib/python3.11/site-packages/torch/cuda.py:9@synchronize
        cudaDeviceSynchronize #gpu_api host=30ms sync=30ms
      cudaFree #gpu_api host=10ms sync=10ms
    cudaStreamSynchronize #gpu_api host=1ms sync=1ms
"""


def test_the_code_of_the_program_that_waits_is_named_whatever_it_calls() -> None:
    assert waiting_lines(profile_from_text(WAITS)) == [
        "the host waited 41.0 ms for the GPU, 41.0 % of its time, 97.6 % of that in train_step train.py:31"
    ]


def test_waits_outside_of_any_code_are_said_to_be() -> None:
    profile = profile_from_text("root\n  cudaDeviceSynchronize #gpu_api host=5ms sync=5ms")
    assert waiting_lines(profile)[0].endswith("100.0 % of its time, 100.0 % of that in code outside of any scope")


def test_a_scope_may_be_called_by_any_word_and_stands_in_quotes() -> None:
    profile = profile_from_text("root\n  wait\n    cudaDeviceSynchronize #gpu_api host=5ms sync=5ms")
    assert waiting_lines(profile)[0].endswith("100.0 % of that in 'wait'")


def test_little_waiting_is_not_worth_a_line() -> None:
    profile = profile_from_text("root\n  a host=97ms\n    cudaFree #gpu_api host=3ms sync=3ms")
    assert waiting_lines(profile) == []
    assert waiting_lines(profile_from_text("root\n  a host=1ms")) == []


def test_what_the_main_thread_waits_for_anything_else_is_a_sentence_of_its_own() -> None:
    get = "/x/lib/python3.11/queue.py:9@get"
    text = f"root\n  a.py:1@fetch host=10ms\n    {get}\n      [waiting] #state host=30ms wait=30ms"
    assert waiting_lines(profile_from_text(text)) == [
        "the main thread waited 30.0 ms, 75.0 % of its time, 100.0 % of that in fetch a.py:1"
    ]


def test_the_time_of_the_main_thread_is_not_that_of_all_threads() -> None:
    text = "root\n  [compile] host=90ms\n  a.py:1@fetch\n    [waiting] #state host=10ms wait=10ms"
    profile = replace(profile_from_text(text), meta={"started_ns": 1, "stopped_ns": 20_000_001})
    assert waiting_lines(profile) == [
        "the main thread waited 10.0 ms, 50.0 % of its time, 100.0 % of that in fetch a.py:1"
    ]


def test_waiting_is_a_share_of_what_the_main_thread_did_after_imports() -> None:
    text = """
root
  a.py:1@main host=10ms
    <frozen importlib._bootstrap>:1@_find_and_load host=50ms
      [waiting] #state host=10ms wait=10ms
    [waiting] #state host=30ms wait=30ms"""
    assert waiting_lines(profile_from_text(text)) == [
        "the main thread waited 30.0 ms, 75.0 % of its 40.0 ms after imports, 100.0 % of that in main a.py:1"
    ]
