from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bragg.proton.errors import InvalidArgument, ProfilerUnavailable
from bragg.proton.mode import PCSampling
from bragg.proton.recording import settings as module
from bragg.proton.recording.settings import Settings, is_disabled


def settings(**changed: str) -> Settings:
    return Settings.of(**{"name": "x", "context": "shadow", "data": "tree", "profiler": "cpu", "mode": "", **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"context": "c++"}, r"Unknown context source: c\+\+"),
        ({"data": "both"}, "Unknown data: both"),
        ({"profiler": "vtune"}, "Unknown profiler: vtune"),
        ({"mode": "fast"}, "unsupported mode: fast"),
        ({"mode": "periodic_flushing:format=pdf"}, "CpuProfiler: unsupported format: pdf"),
        ({"mode": "periodic_flushing:every=1"}, "unsupported option key: every"),
        ({"mode": "pcsampling"}, "CpuProfiler: unsupported mode: pcsampling"),
        ({"profiler": "cupti", "mode": "pcsampling:interval=0"}, "pcsampling: interval=0"),
        ({"profiler": "cupti", "mode": "pcsampling:interval=often"}, "pcsampling: interval=often"),
        ({"profiler": "cupti", "mode": "pcsampling:every=9"}, "CuptiProfiler: unsupported option key: every"),
        ({"profiler": "cupti", "mode": "pcsampling:collection=all"}, "unsupported collection: all"),
    ],
)
@pytest.mark.parametrize("error", [ValueError, RuntimeError])
def test_unknown_argument_is_an_error_of_each_version_of_proton(
    changed: dict[str, str], message: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=message) as raised:
        settings(**changed)
    assert isinstance(raised.value, InvalidArgument)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"profiler": "roctracer"}, "'roctracer': AMD GPUs are not recorded yet"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ProfilerUnavailable, match=message) as raised:
        settings(**changed)
    assert isinstance(raised.value, RuntimeError)
    assert "\n" not in str(raised.value)


def test_context_is_chosen_without_regard_to_case() -> None:
    assert settings(context="Python").context == "python"


@pytest.mark.parametrize(("mode", "expected"), [("", ""), ("periodic_flushing", "hatchet")])
def test_mode_says_how_phases_are_written(mode: str, expected: str) -> None:
    assert settings(mode=mode).flushed_format == expected


@pytest.mark.parametrize(
    ("mode", "period"),
    [
        ("pcsampling", 10),
        (str(PCSampling()), 10),
        ("pcsampling:interval=32768", 15),
        ("pcsampling:interval=40000", 15),
        ("pcsampling:interval=1", 5),
        ("pcsampling:interval=99999999999", 31),
    ],
)
def test_interval_is_the_nearest_that_the_hardware_has(mode: str, period: int) -> None:
    config = settings(profiler="cupti", mode=mode).config("x")
    assert (config.sampling, config.sample_period) == ("serialized", period)


@pytest.mark.parametrize("profiler", ["cupti_pcsampling", "cupti_pcSampling"])
def test_profiler_of_3_4_is_a_mode(profiler: str) -> None:
    found = settings(profiler=profiler)
    assert (found.profiler, found.options.sampling, found.options.sample_period) == ("cupti", "serialized", 10)


def test_kernels_run_as_they_would_where_the_user_asks() -> None:
    assert settings(profiler="cupti", mode="pcsampling:collection=continuous").config("x").sampling == "continuous"


def test_percent_sign_of_a_name_is_no_token() -> None:
    assert settings(name="50%s").config("50%s").output == "50%%s"


def test_host_is_not_sampled_and_launches_are_asked_by_their_hook_alone() -> None:
    config = settings().config("x")
    assert (config.sample_interval_us, config.launch_metadata) == (0, False)


def test_knob_of_triton_goes_before_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_PROTON_DISABLE", "1")
    assert is_disabled()
    monkeypatch.setitem(sys.modules, "triton.knobs", SimpleNamespace(proton=SimpleNamespace(disable=False)))
    assert not is_disabled()


def test_triton_without_the_knob_leaves_it_to_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_ENABLE_NVTX", "0")
    monkeypatch.setitem(sys.modules, "triton.knobs", SimpleNamespace(proton=SimpleNamespace()))
    assert settings().config("x").nvtx is False


def test_where_there_is_an_amd_gpu_it_is_said_that_it_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "choose_backend", lambda *_: SimpleNamespace(name="cpu"))
    assert module.default_profiler() == "cpu"
    monkeypatch.setattr(module, "_AMD_DRIVER", str(tmp_path))
    with pytest.warns(RuntimeWarning, match="AMD GPUs are not recorded yet: scopes and their metrics alone are"):
        assert module.default_profiler() == "cpu"
