"""What took the time of recordings outside of a short steady state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bragg import formats
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.rest_of_run import KernelsOutside, kernels_outside, rest_of_run
from bragg.model import Profile
from tests.support.profiles import profile_from_text
from tests.support.recordings import RECORDINGS

PAIRS = Path(__file__).parents[3] / "golden/recordings/pairs"


def recording(name: str) -> Profile:
    return formats.load(next(path for path in RECORDINGS if name in path.stem))


def took(profile: Profile) -> tuple[list[tuple[str, float, int, str]], tuple[str, ...]]:
    found = rest_of_run(Evidence(profile))
    assert found is not None
    rows = [(each.name, round(each.time_ns / 1e9, 2), each.place.line, each.what) for each in found.took]
    return rows, found.changes


def test_compilation_by_threads_of_xla_counts_as_long_as_any_of_them_ran() -> None:
    rows, changes = took(recording("flax_nnx"))
    assert rows == [("compilation", 6.17, 38, ""), ("imports", 2.78, 3, "")]
    assert changes[0].startswith("JAX_COMPILATION_CACHE_DIR=DIR keeps")


def test_without_a_timeline_it_counts_as_long_as_a_gpu_waited_for_it() -> None:
    rows, _ = took(formats.load(PAIRS / "h100-jax_reads_slow.bragg"))
    assert rows == [("compilation", 1.89, 17, ""), ("imports", 1.2, 3, "")]


def test_what_python_waits_for_at_the_end_has_a_name() -> None:
    rows, changes = took(recording("compiled_encoder"))
    ended = ("the end", 9.1, 151, "shutdown_compile_workers")
    assert rows == [("imports", 16.28, 8, ""), ended, ("compilation", 4.42, 12, "")]
    assert [change.partition("=")[0] for change in changes][1] == "TORCHINDUCTOR_COMPILE_THREADS"


def test_imports_alone_ask_for_no_change() -> None:
    assert took(recording("trainer_gpt2")) == ([("imports", 15.9, 6, "")], ())


@pytest.mark.parametrize("facts", [{"started_ns": None}, {}])
def test_a_long_steady_state_needs_no_explanation(facts: dict[str, Any]) -> None:
    profile = recording("trainer_gpt2")
    if not facts:
        parts = Evidence(profile).parts
        assert parts is not None
        assert parts.steady is not None
        facts = {"started_ns": parts.steady.begins_ns - 1_000_000}
    assert rest_of_run(Evidence(replace(profile, meta={**profile.meta, **facts}))) is None


KERNELS = """
root
  main
    scale<w4 s3 f16> 30us
    scale<w4 s3 f32> 20us
    product<w4 s3 f16> 40us
    of_a_library 5us
    /lib/triton/runtime/autotuner.py:100@Autotuner._bench
      tuned<BLOCK=64 w4 s3 f16> 5us
"""


@pytest.mark.parametrize(
    ("in_steady", "outside"),
    [
        (["product<w4 s3 f16>"], KernelsOutside(("scale",), 0.5)),
        (["scale<w4 s3 f16>", "scale<w4 s3 f32>", "product<w4 s3 f16>"], None),
        (["scale<w4 s3 f16>", "scale<w4 s3 f32>"], KernelsOutside(("product",), 0.4)),
    ],
)
def test_kernels_that_ran_before_the_steady_state_alone_are_named(
    in_steady: list[str], outside: KernelsOutside | None
) -> None:
    profile = profile_from_text(KERNELS)
    names = np.array(profile.tree.frames.name)
    coded = SimpleNamespace(names=[name for name in names.tolist() if "<" in name])
    gpu_ns = np.where(np.isin(names[profile.tree.frame], in_steady), 1.0, 0.0)
    evidence = SimpleNamespace(profile=profile, is_steady=True, of_steady=True, gpu_ns=gpu_ns, compiled=coded)
    assert kernels_outside(cast(Evidence, evidence)) == outside
    evidence.is_steady = evidence.of_steady = False
    assert kernels_outside(cast(Evidence, evidence)) is None
