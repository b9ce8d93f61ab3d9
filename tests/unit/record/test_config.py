from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from bragg.errors import UsageError
from bragg.record import RecordConfig
from bragg.record.inside.sessions import Options


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
    options = config.options()
    given = {"backend": "cpu", "context": "shadow", "data": "trace", "graphs": "graph", "gpu_api": "sync"}
    given |= {"framework": "torch", "modules": True, "regions": "step,data", "shapes": True}
    given |= {"flush_interval_ms": 50, "tree_limit_mb": 64, "sample_interval_us": 0}
    assert {name: options[name] for name in given} == given
    assert json.loads(json.dumps(options)) == options
    assert not options.keys() & {"output", "force", "rotate_s", "rotate_keep"}


def test_sampling_is_left_to_the_backend_unless_chosen() -> None:
    assert RecordConfig().options()["sample_interval_us"] is None


def test_every_option_of_a_program_is_one_of_a_recording() -> None:
    assert set(Options.__annotations__) <= {item.name for item in fields(RecordConfig)}


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
        ({"telemetry_hz": -1.0}, "0.1 to 100 times a second, not -1"),
        ({"exact_kernels": "("}, "is not a regular expression"),
        ({"exact_kernels": r"copy_\d"}, "not a POSIX extended regular expression"),
        ({"exact_kernels": "(?:copy)"}, "not a POSIX extended regular expression"),
        ({"exact_kernels": "copy", "exact_launches": 0}, "1 to 1,000,000 launches"),
        ({"exact_kernels": "copy", "exact_metrics": "x" * 512}, "at most 511 bytes"),
        ({"exact_kernels": "copy", "counters": "dram", "data": "trace"}, "need the same hardware"),
        ({"exact_kernels": "copy", "sampling": "windows"}, "need the same hardware"),
        ({"telemetry_hz": 1000.0}, "0.1 to 100 times a second"),
        ({"rotate_s": 60, "rotate_keep": 0}, "at least 1"),
        ({"rotate_keep": 3}, "needs a rotation"),
        ({"output": "%x.bragg"}, "unknown token '%x'"),
        ({"output": "100%"}, "unknown token '%'"),
    ],
)
def test_value_out_of_range_is_a_usage_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RecordConfig(**options)


def test_names_of_counters_are_known_without_a_gpu() -> None:
    RecordConfig(counters="dram,l2_busy,dram__bytes_read.sum", data="trace")
    for options in (
        {"counters": "default,dram_reed", "data": "trace"},
        {"exact_kernels": ".", "exact_metrics": "dram_reed"},
    ):
        with pytest.raises(UsageError, match="there is no counter 'dram_reed'") as caught:
            RecordConfig(**options)  # type: ignore[arg-type]
        assert caught.value.hint.startswith("Did you mean dram_read? Sets: default, dram,")
    with pytest.raises(UsageError) as caught:
        RecordConfig(counters="zzz", data="trace")
    assert caught.value.hint.startswith("Sets: ")


def test_flops_are_counted_for_launches_and_not_sampled() -> None:
    RecordConfig(exact_kernels="matmul", exact_metrics="dram,flop")
    with pytest.raises(UsageError, match="there is no counter 'flop'"):
        RecordConfig(counters="flop", data="trace")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"instrument": "(mat"}, "not a regular expression"),
        ({"instrument_budget": 0.0}, "above 0"),
        ({"instrument_buffer_mb": 1}, "4 to 16384 MB"),
        ({"instrument": ".", "instrument_probes": "values,lanes"}, "unknown probe 'lanes'"),
        ({"instrument_probes": "values"}, "kernels with clocks"),
        ({"instrument_shared": True}, "those of clocks"),
    ],
)
def test_clocks_have_a_pattern_a_budget_and_a_buffer(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        RecordConfig(**options)


def test_nccl_needs_a_gpu() -> None:
    with pytest.raises(UsageError, match="NCCL works on GPUs, which the backend 'cpu' leaves out"):
        RecordConfig(nccl=True, backend="cpu")
