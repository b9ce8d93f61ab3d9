from __future__ import annotations

from typing import Any

import pytest

from bragg.errors import UsageError
from bragg.record import RecordConfig


def test_variables_say_what_the_config_says() -> None:
    config = RecordConfig(
        backend="cpu",
        context="shadow",
        data="trace",
        graphs="graph",
        gpu_api="sync",
        framework="torch",
        modules=True,
        regions="step,data",
        shapes=True,
        flush_interval_ms=50,
        tree_limit_mb=64,
        sample_interval_us=0,
    )
    assert config.variables() == {
        "BRAGG_BACKEND": "cpu",
        "BRAGG_CONTEXT": "shadow",
        "BRAGG_DATA": "trace",
        "BRAGG_GRAPHS": "graph",
        "BRAGG_GPU_API": "sync",
        "BRAGG_FRAMEWORK": "torch",
        "BRAGG_MODULES": "1",
        "BRAGG_REGIONS": "step,data",
        "BRAGG_SHAPES": "1",
        "BRAGG_FLUSH_MS": "50",
        "BRAGG_TREE_MB": "64",
        "BRAGG_LAUNCH_METADATA": "1",
        "BRAGG_KERNEL_CODE": "1",
        "BRAGG_SAMPLE_US": "0",
    }


def test_sampling_is_left_to_the_backend_unless_chosen() -> None:
    assert "BRAGG_SAMPLE_US" not in RecordConfig().variables()


def test_nvtx_is_left_to_the_environment_unless_chosen() -> None:
    assert "BRAGG_NVTX" not in RecordConfig().variables()
    assert [RecordConfig(nvtx=choice).variables()["BRAGG_NVTX"] for choice in (False, True)] == ["0", "1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "gpu"}, "unknown backend 'gpu'"),
        ({"context": "c++"}, "unknown context"),
        ({"data": "both"}, "unknown data"),
        ({"gpu_api": "some"}, "unknown level of GPU API calls"),
        ({"framework": "flax"}, "unknown framework"),
        ({"framework": "jax", "modules": True}, "modules are those of PyTorch"),
        ({"flush_interval_ms": 0}, "at least 1 ms"),
        ({"tree_limit_mb": 0}, "1 to 16384 MB"),
        ({"sample_interval_us": -1}, "negative"),
        ({"output": ""}, "empty"),
        ({"rotate_s": 0}, "must be positive"),
        ({"rotate_s": 60, "rotate_keep": 0}, "at least 1"),
        ({"rotate_keep": 3}, "needs a rotation"),
        ({"output": "%x.bragg"}, "unknown token '%x'"),
        ({"output": "100%"}, "unknown token '%'"),
    ],
)
def test_value_out_of_range_is_a_usage_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RecordConfig(**options)
