from __future__ import annotations

import subprocess
import sys

import bragg
from bragg.record.inside.scope import scope

PUBLIC = {
    "Profile",
    "Session",
    "__version__",
    "activate",
    "deactivate",
    "do_bench",
    "do_bench_cudagraph",
    "enter_scope",
    "errors",
    "exit_scope",
    "instrument",
    "kernel_event_begin",
    "kernel_event_end",
    "kernel_scope",
    "load",
    "load_job",
    "profile",
    "record_metrics",
    "scope",
    "start",
    "stop",
}


def test_public_names_are_these() -> None:
    assert set(bragg.__all__) == PUBLIC
    assert set(dir(bragg)) >= PUBLIC


def test_scope_is_the_native_type_itself() -> None:
    assert bragg.scope is scope
    assert type(bragg.scope) is type
    assert bragg.scope.__module__ == "bragg._core"


def test_name_is_a_plain_attribute_after_its_first_use() -> None:
    program = "import bragg; assert 'scope' not in vars(bragg); bragg.scope; assert 'scope' in vars(bragg)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_methods_of_one_recorder_are_public() -> None:
    assert bragg.start.__self__ is bragg.stop.__self__  # type: ignore[attr-defined]


def test_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(bragg, "finalize")
