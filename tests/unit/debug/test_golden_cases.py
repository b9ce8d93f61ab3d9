"""Every operation on every type gives what a GPU gives: exactly where IEEE 754 says what that is, else closely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bragg.debug

pytest.importorskip("triton")
pytest.importorskip("ml_dtypes")

import triton

from bragg.debug.numbers.promotion import extremes_are_wide
from tests.gpu import golden_cases as golden
from tests.support.float_types import TYPES, in_numpy

TABLE = Path(__file__).parents[2] / "golden" / "debug_cases.npz"

Results = dict[str, Any]
of_older_triton = pytest.mark.skipif(not extremes_are_wide(), reason="Triton 3.9 keeps bf16; the table is of 3.6")


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, dict[str, int]]:
    """What the engine gives for all cases: results as the kernels store them, and their types."""
    wanted = golden.groups(golden.cases())
    module = golden.load(tmp_path_factory.mktemp("kernels"), wanted)
    results: Results = {}
    kinds: dict[str, int] = {}
    language = triton.knobs.language
    with language.scope(), bragg.debug.interpret(), np.errstate(all="ignore"):
        language.fp32_default = "tf32"  # as on the GPU
        for name, group in wanted.items():
            out, types = golden.run(getattr(module, name), group, in_numpy)
            results |= {case.name: row for case, row in zip(group, out, strict=True)}
            kinds |= {case.name: int(kind) for case, kind in zip(group, types, strict=True)}
    return results, kinds


def test_there_are_thousands_of_cases_and_the_engine_executes_all(executed: tuple[Results, dict[str, int]]) -> None:
    names = [case.name for case in golden.cases()]
    assert len(names) >= 2_000
    assert set(executed[0]) == set(names)


def test_a_table_keeps_results_and_types(executed: tuple[Results, dict[str, int]]) -> None:
    results, kinds = executed
    kept = golden.unpack(golden.pack(golden.cases(), results, kinds))
    assert {name: kind for name, (kind, _) in kept.items()} == kinds
    for name in ("int8: a - b", "uint64: a * b", "fp64: a + b", "fp16 int32: a < b"):
        stored = results[name].view(np.float64) if golden.is_float(kinds[name]) else results[name]
        np.testing.assert_array_equal(kept[name][1], stored)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fp16 int64: a + b", 116),
        ("bf16 fp16: a + b", 116),
        ("int32 uint32: a + b", 32),
        ("int8 uint8: a * b", 8),
        ("int8 int16: a & b", 416),
        ("int32: a / 2", 132),
        ("int8: a + 0.5", 132),
        ("uint8: a < True", 1),
        pytest.param("bf16: tl.maximum(a, b)", 132, marks=of_older_triton),
    ],
)
def test_types_of_results_are_tritons(executed: tuple[Results, dict[str, int]], name: str, kind: int) -> None:
    assert executed[1][name] == kind


@of_older_triton
def test_results_are_those_of_the_gpu(executed: tuple[Results, dict[str, int]]) -> None:
    with np.load(TABLE) as file:
        expected = golden.unpack(file)
    actual = golden.unpack(golden.pack(golden.cases(), *executed))
    assert set(expected) == set(actual)
    cases = {case.name: case for case in golden.cases()}
    wrong = {name: text for name in expected if (text := difference(cases[name], actual[name], expected[name]))}
    assert not wrong, f"{len(wrong)} of {len(expected)}: " + "\n".join(f"{n}: {t}" for n, t in list(wrong.items())[:40])


def difference(case: golden.Case, actual: tuple[int, Any], expected: tuple[int, Any]) -> str:
    """How a result differs from the GPU's; empty when it does not."""
    (kind, ours), (gpu_kind, theirs) = actual, expected
    if kind != gpu_kind:
        return f"type {kind} instead of {gpu_kind}"
    if golden.is_float(kind):
        storage = {164: np.float64, 116: np.float16}.get(kind, np.float32)
        with np.errstate(all="ignore"):
            step = np.spacing(np.abs(theirs).astype(storage)).astype(np.float64) * (2**16 if kind == 216 else 1)
            is_same = (ours == theirs) & (np.signbit(ours) == np.signbit(theirs))
            is_same |= (np.isnan(ours) & np.isnan(theirs)) | (np.abs(ours - theirs) <= case.ulp * step + case.absolute)
    else:
        is_same = ours == theirs
    differs = np.flatnonzero(~is_same & ~unspecified(case, theirs))
    return ", ".join(f"lane {k}: {ours[k]!r} instead of {theirs[k]!r}" for k in differs[:3].tolist())


def unspecified(case: golden.Case, theirs: Any) -> Any:
    """Lanes in which the GPU's result is anybody's guess; see test_golden_operations."""
    free = np.zeros(len(theirs), bool)
    if case.types not in (("fp64",), ("fp8e5",)):
        return free
    first = golden.operands([case])[0].view(TYPES[case.types[0]]).astype(np.float64)
    if case.name in ("fp64: a.to(tl.int8)", "fp64: a.to(tl.uint8)"):
        return ~(np.abs(first) < 128) if "uint" not in case.name else ~((first >= 0) & (first < 256))
    return ~np.isfinite(first) if case.name == "fp8e5: a.to(tl.bfloat16)" else free
