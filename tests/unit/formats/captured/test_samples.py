from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bragg import formats
from bragg.code.reading import CodeWish
from bragg.code.sampled_function import SampledFunction
from bragg.code.source_place import CallChain, SourcePlace
from bragg.formats import capture
from bragg.formats.captured.chunks import ChunkType
from bragg.model import FrameKind, Profile
from bragg.model.regroup import fold_specializations
from tests.support.captures import NONE, CaptureBuilder, chunk

ROOT, STATE, KERNEL = FrameKind.ROOT, FrameKind.STATE, FrameKind.KERNEL
CUBIN = b"machine code"
CRC = 0xDF940D43


def sampled_capture() -> CaptureBuilder:
    """Samples of a kernel, also of launches that were not seen."""
    return with_sample_rows(kernel_capture())


def kernel_capture() -> CaptureBuilder:
    """Two nodes of a kernel, one below a scope, and one without a launch."""
    built = CaptureBuilder().strings(
        "matmul",
        "<samples without a launch>",
        "smsp__pcsamp_warps_issue_stalled_selected",
        "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
        "a_new_reason",
        "forward",
    )
    built.rows(ChunkType.FRAMES, (ROOT, NONE, NONE, 0, NONE), (KERNEL, 0, NONE, 0, 0), (STATE, 1, NONE, 0, NONE))
    built.rows(ChunkType.FRAMES, (FrameKind.SCOPE, 5, NONE, 0, NONE))
    return built.rows(ChunkType.NODES, (NONE, 0), (0, 3), (1, 1), (0, 2), (3, 1))


def timed_capture() -> CaptureBuilder:
    """The same with two launches, as sums and on a timeline."""
    built = kernel_capture().rows(ChunkType.METRICS, (2, 1, 2, 700, 300, 400, 0))
    built.rows(ChunkType.TRACKS, (2, 0, 1, 7, NONE))
    return built.rows(ChunkType.SLICES, (1000, 300, 2, 0, 1), (2000, 400, 2, 0, 2))


def with_sample_rows(built: CaptureBuilder) -> CaptureBuilder:
    built.add(chunk(ChunkType.CUBIN, 1, CRC.to_bytes(8, "little") + CUBIN))
    built.rows(ChunkType.CODE, (CRC, 0))
    built.rows(
        ChunkType.SAMPLES,
        (2, 0, 0, 2, 10, 10),
        (2, 0, 16, 3, 30, 30),
        (2, 0, 16, 3, 50, 40),  # the last of a row counts
        (2, 0, 32, 4, 2, 0),
        (4, 0, 16, 3, 7, 0),
    )
    return built


def read_code(
    wish: CodeWish, profile: Profile, sampled: Sequence[SampledFunction]
) -> tuple[Profile, Sequence[Mapping[int, CallChain]]]:
    assert sampled == [SampledFunction("matmul", "matmul", CRC, CUBIN)]
    inner, outer = SourcePlace("/m.py", 7, 0, "helper"), SourcePlace("/m.py", 3)
    return replace(profile, sources={"/m.py": "text"}), [{0: (outer,), 16: (inner, outer)}]


@pytest.fixture(autouse=True)
def _known_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bragg.code.reading.read_code", read_code)


def paths(profile: Profile) -> dict[str, int]:
    """Own samples by path below the root."""
    frames, own = profile.tree.frames, profile.own("num_samples")

    def step(node: int) -> str:
        row = profile.tree.frame[node]
        return frames.name[row] + (f":{frames.line[row]}" if frames.line[row] else "")

    return {"/".join(map(step, profile.tree.path(node)[1:])): int(own[node]) for node in np.flatnonzero(own)}


def test_samples_lie_on_instructions_below_the_lines_they_come_from(tmp_path: Path) -> None:
    path = sampled_capture().write(tmp_path / "run.part")
    profile = capture.read(path, code=CodeWish.TEXTS)
    profile.check()
    assert profile.sources == {"/m.py": "text"}
    assert paths(profile) == {
        "forward/matmul/:3/+0x0": 10,
        "forward/matmul/:3/helper:7/+0x10": 50,
        "forward/matmul/+0x20": 2,
        "<samples without a launch>/matmul/:3/helper:7/+0x10": 7,
    }


def test_counts_by_instruction_are_metrics_and_no_samples(tmp_path: Path) -> None:
    built = sampled_capture().strings("smsp__sass_inst_executed")
    built.rows(ChunkType.SAMPLES, (2, 0, 0, 6, 64, 64), (2, 0, 48, 6, 5, 5), (2, 0, 48, 6, 8, 8))
    profile = capture.read(built.write(tmp_path / "run.part"))
    profile.check()
    counted = profile.own("smsp__sass_inst_executed")
    names = {profile.tree.frames.name[profile.tree.frame[node]]: int(counted[node]) for node in np.flatnonzero(counted)}
    assert names == {"+0x0": 64, "+0x30": 8}
    assert profile.total("num_samples") == profile.meta["sampling"]["samples"] == 69
    assert not [name for name in profile.metrics if "stalled_inst" in name]


def test_without_a_reader_of_code_instructions_are_below_their_kernel(tmp_path: Path) -> None:
    profile = capture.read(sampled_capture().write(tmp_path / "run.part"))
    assert set(paths(profile)) == {
        *(f"forward/matmul/+{offset}" for offset in ("0x0", "0x10", "0x20")),
        "<samples without a launch>/matmul/+0x10",
    }


def test_reasons_are_metrics_and_what_is_shared_out_is_told(tmp_path: Path) -> None:
    profile = capture.read(sampled_capture().write(tmp_path / "run.part"))
    totals = {name: profile.total(name) for name in profile.metrics}
    assert totals == {
        "num_samples": 69,
        "num_stalled_samples": 59,
        "num_samples_apportioned": 19,
        "stalled_selected": 10,
        "stalled_long_scoreboard": 57,
        "stalled_a_new_reason": 2,
    }
    assert profile.meta["sampling"] == {"samples": 69, "exact": 50, "without_launch": 7}


@pytest.mark.parametrize("row", [(2, 0, 0, 2, 10, 11), (2, 0, 0, 2, 2**63, 0)])
def test_rows_that_mean_nothing_are_damage(tmp_path: Path, row: tuple[int, ...]) -> None:
    built = sampled_capture().rows(ChunkType.SAMPLES, row)
    profile = capture.read(built.write(tmp_path / "run.part"))
    assert profile.meta["capture"]["damaged_chunks"] == 1
    assert profile.total("num_samples") == 69


def exported(profile: Profile, format_name: str, folder: Path) -> bytes:
    formats.export(profile, format_name, folder / "export")
    return (folder / "export").read_bytes()


def hatchet_kernels(profile: Profile, folder: Path) -> dict[str, dict[str, float]]:
    """Metrics of the kernels in the file, without those of samples."""
    pending = [json.loads(exported(profile, "hatchet", folder))[0]]
    found = {}
    for node in pending:
        pending += node["children"]
        if "time (ns)" in node["metrics"]:
            found[node["frame"]["name"]] = {k: v for k, v in node["metrics"].items() if "samples" not in k}
    return found


def flame_graphs(profile: Profile, folder: Path) -> dict[str, dict[str, int]]:
    """Weight by call path, by metric."""
    document = json.loads(exported(profile, "speedscope", folder))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    return {
        graph["name"]: {
            "/".join(names[frame] for frame in stack): weight
            for stack, weight in zip(graph["samples"], graph["weights"], strict=True)
        }
        for graph in document["profiles"]
    }


def test_exports_have_the_times_that_they_have_without_samples(tmp_path: Path) -> None:
    plain = capture.read(timed_capture().write(tmp_path / "plain.part"))
    sampled = capture.read(with_sample_rows(timed_capture()).write(tmp_path / "run.part"), code=CodeWish.TEXTS)
    for format_name in ("perfetto", "collapsed"):
        assert exported(sampled, format_name, tmp_path) == exported(plain, format_name, tmp_path)
    events, expected = (json.loads(exported(each, "chrome", tmp_path))["traceEvents"] for each in (sampled, plain))
    assert events == expected
    times = hatchet_kernels(sampled, tmp_path)
    assert times == hatchet_kernels(plain, tmp_path) | {"ROOT": times["ROOT"]}
    assert times["matmul"]["time (ns)"] == 700
    graphs = flame_graphs(sampled, tmp_path)
    assert graphs.pop("num_samples") == {
        "forward/matmul/m.py:3/+0x0": 10,
        "forward/matmul/m.py:3/helper/+0x10": 50,
        "forward/matmul/+0x20": 2,
        "<samples without a launch>/matmul/m.py:3/helper/+0x10": 7,
    }
    assert {name: graph for name, graph in graphs.items() if "stall" not in name and "appor" not in name} == (
        flame_graphs(plain, tmp_path)
    )


def test_specializations_that_are_put_together_keep_their_times_and_samples(tmp_path: Path) -> None:
    profile = capture.read(with_sample_rows(timed_capture()).write(tmp_path / "run.part"), code=CodeWish.TEXTS)
    folded = fold_specializations(profile)
    folded.check()
    assert paths(folded) == paths(profile)
    assert folded.total("gpu_time") == 700
