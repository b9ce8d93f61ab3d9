from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bragg.errors import UsageError
from bragg.record import RecordConfig
from bragg.record.environment import claim_injection_variables, recording_environment

CAPTURES = Path("/captures")
LIBRARY = "/lib/libbragg_core.so"


def test_environment_switches_recording_on_and_keeps_the_rest() -> None:
    environ, notes = recording_environment({"HOME": "/h", "PYTHONPATH": "/mine"}, RecordConfig(), CAPTURES, LIBRARY)
    inject, mine = environ["PYTHONPATH"].split(":")
    assert (Path(inject) / "sitecustomize.py").is_file()
    assert (mine, environ["HOME"], environ["BRAGG_CAPTURE_DIR"]) == ("/mine", "/h", "/captures")
    assert (environ["CUDA_INJECTION64_PATH"], environ["INTEL_LIBITTNOTIFY64"], notes) == (LIBRARY, LIBRARY, [])


def options_in(inherited: dict[str, str], config: RecordConfig) -> dict[str, Any]:
    environ, _ = recording_environment(inherited, config, CAPTURES, LIBRARY)
    options: dict[str, Any] = json.loads(environ["BRAGG_OPTIONS"])
    return options


def test_outer_recording_does_not_leak_its_options() -> None:
    outer = {"BRAGG_OPTIONS": '{"sample_interval_us": 7, "rotate_interval_ms": 70, "as_proton": true}'}
    inner = options_in(outer, RecordConfig())
    assert (inner["sample_interval_us"], inner["rotate_interval_ms"], inner["as_proton"]) == (None, 0, False)
    assert options_in(outer, RecordConfig(rotate_s=1.5))["rotate_interval_ms"] == 1500


def test_nvtx_is_left_to_the_environment_unless_chosen() -> None:
    assert "BRAGG_NVTX" not in recording_environment({}, RecordConfig(), CAPTURES, LIBRARY)[0]
    chosen = [recording_environment({}, RecordConfig(nvtx=choice), CAPTURES, LIBRARY)[0] for choice in (False, True)]
    assert [environ["BRAGG_NVTX"] for environ in chosen] == ["0", "1"]


def test_cpu_backend_leaves_the_gpu_alone() -> None:
    environ, _ = recording_environment({}, RecordConfig(backend="cpu"), CAPTURES, LIBRARY)
    assert "CUDA_INJECTION64_PATH" not in environ


@pytest.mark.parametrize(
    ("variable", "lost"),
    [
        ("CUDA_INJECTION64_PATH", "work on the GPU"),
        ("INTEL_LIBITTNOTIFY64", "operators that come through ITT"),
        ("NVTX_INJECTION64_PATH", "NVTX ranges"),
    ],
)
def test_other_tool_keeps_its_variable_and_is_named(variable: str, lost: str) -> None:
    environ, notes = recording_environment({variable: "/other.so"}, RecordConfig(), CAPTURES, LIBRARY)
    assert environ[variable] == "/other.so"
    assert len(notes) == 1
    assert notes[0].startswith(f"{variable} belongs to /other.so: {lost}")


def test_empty_variable_is_free() -> None:
    environ = {"CUDA_INJECTION64_PATH": ""}
    assert claim_injection_variables(environ, RecordConfig(), LIBRARY) == []
    assert environ["CUDA_INJECTION64_PATH"] == LIBRARY


@pytest.mark.parametrize(
    ("environ", "nvtx", "wanted"),
    [
        ({}, None, True),
        ({"TRITON_ENABLE_NVTX": "0"}, None, False),
        ({"TRITON_ENABLE_NVTX": "False"}, None, False),
        ({"TRITON_ENABLE_NVTX": "on"}, None, True),
        ({"BRAGG_NVTX": "off"}, None, False),
        ({"BRAGG_NVTX": "1", "TRITON_ENABLE_NVTX": "0"}, None, True),
        ({"TRITON_ENABLE_NVTX": "0"}, True, True),
        ({}, False, False),
        ({"NVTX_INJECTION64_PATH": LIBRARY}, False, False),
    ],
)
def test_nvtx_is_on_unless_it_is_switched_off(environ: dict[str, str], nvtx: bool | None, wanted: bool) -> None:
    result, notes = recording_environment(environ, RecordConfig(nvtx=nvtx), CAPTURES, LIBRARY)
    assert (result.get("NVTX_INJECTION64_PATH") == LIBRARY, notes) == (wanted, [])


def test_nvtx_that_is_switched_off_leaves_the_other_tool_its_variable() -> None:
    environ, notes = recording_environment(
        {"NVTX_INJECTION64_PATH": "/other.so"}, RecordConfig(nvtx=False), CAPTURES, LIBRARY
    )
    assert (environ["NVTX_INJECTION64_PATH"], notes) == ("/other.so", [])


def test_switch_that_is_neither_on_nor_off_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="BRAGG_NVTX=maybe is neither on nor off"):
        claim_injection_variables({"BRAGG_NVTX": "maybe"}, RecordConfig(), LIBRARY)


def test_nccl_finds_the_plug_in_where_it_is_wanted() -> None:
    wanted = RecordConfig(nccl=True)
    assert recording_environment({}, wanted, CAPTURES, LIBRARY)[0]["NCCL_PROFILER_PLUGIN"] == LIBRARY
    outer = {"NCCL_PROFILER_PLUGIN": LIBRARY}
    assert "NCCL_PROFILER_PLUGIN" not in recording_environment(outer, RecordConfig(), CAPTURES, LIBRARY)[0]


def test_a_plug_in_of_the_program_is_left_alone() -> None:
    environ, (note,) = recording_environment(
        {"NCCL_PROFILER_PLUGIN": "inspector"}, RecordConfig(nccl=True), CAPTURES, LIBRARY
    )
    assert environ["NCCL_PROFILER_PLUGIN"] == "inspector"
    assert note == ("NCCL_PROFILER_PLUGIN belongs to inspector: what NCCL tells of its collectives cannot be recorded")


def test_a_path_that_nccl_would_cut_off_is_named() -> None:
    environ, (note,) = recording_environment({}, RecordConfig(nccl=True), CAPTURES, f"/{'d' * 250}/libbragg_core.so")
    assert "NCCL_PROFILER_PLUGIN" not in environ
    assert note.startswith("the path of libbragg_core.so is longer than NCCL reads")
