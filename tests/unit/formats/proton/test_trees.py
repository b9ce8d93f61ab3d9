from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.errors import BadFile
from bragg.model import FrameKind, MetricKind, Profile
from tests.support.profiles import tree_to_text

# Written by Proton, or like it where its writers need a GPU.
FOLDER = Path(__file__).parents[3] / "golden" / "proton"
KERNELS = """root
  forward
    matmul 200us x10
    relu 10us x2
    __proton_launch_metadata:matmul
      sum 4us
  /src/train.py:12@step
    <captured_at>
      block
        matmul 100us x5"""


def inclusive(profile: Profile, metric: str) -> dict[str, Any]:
    """Values that are not zero, by label; of equal labels the last."""
    values = profile.inclusive(metric).tolist()
    return {profile.tree.label(node): value for node, value in enumerate(values) if value}


@pytest.mark.parametrize("name", ["kernels-3.6.hatchet", "kernels-3.9.hatchet"])
def test_tree_of_kernels_has_the_same_sums_whatever_release_wrote_it(name: str) -> None:
    profile = formats.load(FOLDER / name)
    profile.check()
    assert tree_to_text(profile) == KERNELS
    assert inclusive(profile, "bytes") == {
        "root": 12_000_000,
        "forward": 11_000_000,
        "relu": 1_000_000,
        "/src/train.py:12@step": 1_000_000,
        "<captured_at>": 1_000_000,
        "block": 1_000_000,
        "matmul": 1_000_000,
    }
    assert profile.total("flops8") == 3e10
    assert "assumed_inclusive" not in profile.meta


def test_tree_of_an_h200_has_the_sums_that_proton_s_viewer_shows() -> None:
    profile = formats.load(FOLDER / "h200-3.6.hatchet")
    profile.check()
    assert (profile.total("gpu_time"), profile.total("gpu_count"), profile.total("bytes")) == (23_231, 11, 53_477_376)
    time = inclusive(profile, "gpu_time")
    assert {name: time[name] for name in ("forward", "mm", "side", "timed", "replay", "<captured_at>")} == {
        "forward": 12_191,
        "mm": 8_256,
        "side": 2_208,
        "timed": 2_240,
        "replay": 4_960,
        "<captured_at>": 4_960,
    }
    assert inclusive(profile, "lat") == {"forward": 3}
    assert profile.total("tokens") == 128


def test_kinds_places_and_devices_of_frames_are_told_by_names_and_metrics() -> None:
    frames = formats.load(FOLDER / "kernels-3.9.hatchet").tree.frames
    kinds, lines, devices = (column.tolist() for column in (frames.kind, frames.line, frames.device))
    rows = list(zip(frames.name, kinds, frames.file, lines, devices, strict=True))
    assert ("matmul", FrameKind.KERNEL, "", 0, 0) in rows
    assert ("matmul", FrameKind.KERNEL, "", 0, 1) in rows
    assert ("step", FrameKind.PYTHON, "/src/train.py", 12, -1) in rows
    assert ("<captured_at>", FrameKind.STATE, "", 0, -1) in rows
    assert ("forward", FrameKind.SCOPE, "", 0, -1) in rows


def test_devices_have_the_facts_that_peaks_are_found_by() -> None:
    facts = {"arch": "90", "bus_width_bits": 6144, "clock_khz": 1980000, "memory_clock_khz": 2619000, "num_sms": 132}
    devices = formats.load(FOLDER / "kernels-3.9.hatchet").meta["devices"]
    assert devices == [{"device_type": "CUDA", **facts}] * 2


def test_release_that_names_all_inclusive_metrics_is_taken_at_its_word() -> None:
    profile = formats.load(FOLDER / "scopes-3.6.hatchet")
    kinds = {name: metric.kind for name, metric in profile.metrics.items()}
    assert kinds["lat"] is MetricKind.EXCLUSIVE
    assert kinds["cpu_time"] is MetricKind.EXCLUSIVE
    assert inclusive(profile, "bytes") == {"root": 115, "outer": 115, "inner": 110}
    assert inclusive(profile, "lat") == {"inner": 3}
    assert profile.metrics["lat"].unit == "us"


@pytest.mark.parametrize("name", ["scopes-3.9.hatchet", "scopes-3.9.hatchet_msgpack"])
def test_release_that_names_only_its_own_metrics_has_sums_that_are_said_to_be_assumed(name: str) -> None:
    profile = formats.load(FOLDER / name)
    assert inclusive(profile, "lat") == {"root": 3, "outer": 3, "inner": 3}
    assert profile.meta["assumed_inclusive"] == ["lat", "tile", "note", "vec"]
    assert inclusive(profile, "bytes") == {"root": 115, "outer": 115, "inner": 110}
    assert inclusive(profile, "vec[2]") == {"root": 3, "vec": 3}
    assert profile.metrics["cpu_time"].kind is MetricKind.EXCLUSIVE


def test_sampled_lines_of_a_kernel_are_lines() -> None:
    profile = formats.load(FOLDER / "samples-3.9.hatchet")
    assert inclusive(profile, "num_samples") == {"root": 8, "kernel": 8, "dir/k.py:3@kernel": 6, "dir/k.py:4@kernel": 2}
    assert profile.tree.kind.tolist() == [FrameKind.ROOT, FrameKind.KERNEL, FrameKind.LINE, FrameKind.LINE]


def test_file_is_told_by_its_content(tmp_path: Path) -> None:
    for name in ("kernels-3.9.hatchet", "scopes-3.9.hatchet_msgpack", "kernels-3.9.chrome_trace"):
        renamed = tmp_path / "profile.json"
        renamed.write_bytes((FOLDER / name).read_bytes())
        assert formats.load(renamed).meta["recorder"] == "proton"


def test_text_metrics_are_named_and_left_out(tmp_path: Path) -> None:
    assert load(tmp_path, node("ROOT", [node("a", note="fast", n=1)])).meta["text_metrics"] == ["note"]


def test_numbers_that_are_none_and_numbers_beyond_64_bits(tmp_path: Path) -> None:
    profile = load(tmp_path, node("ROOT", [node("a", x=float("nan"), y=2**64), node("b", x=2, y=1)]))
    assert profile.own("x").tolist() == [0, 0, 2]
    assert profile.total("y") == pytest.approx(2.0**64)


def test_metrics_whose_names_differ_in_the_unit_only_stay_apart(tmp_path: Path) -> None:
    profile = load(tmp_path, node("ROOT", [node("a", **{"lat (us)": 1, "lat (ms)": 2})]))
    assert {name: metric.unit for name, metric in profile.metrics.items()} == {"lat": "us", "lat (ms)": "ms"}


def test_file_without_devices_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps([node("ROOT", [node("a", n=1)])]))
    assert formats.load(tmp_path / "file").meta["devices"] == []


@pytest.mark.parametrize(
    "document",
    [
        [{"frame": {"name": "ROOT"}, "metrics": 5}, {}],
        [{"frame": {"name": 7}, "metrics": {}}, {}],
        [{"frame": {"name": "ROOT"}, "metrics": {}, "children": [5]}, {}],
        [{"frame": {"name": "ROOT"}, "metrics": {}}, {"CUDA": {"99999": {}}}],
        [{"frame": {"name": "ROOT"}, "metrics": {}}, []],
    ],
)
def test_damage_is_said(document: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps(document))
    with pytest.raises(BadFile, match="is damaged: "):
        formats.load(tmp_path / "file")


def node(name: str, children: list[dict[str, Any]] | None = None, **metrics: Any) -> dict[str, Any]:
    return {"frame": {"name": name, "type": "function"}, "metrics": metrics, "children": children or []}


def load(folder: Path, tree: dict[str, Any]) -> Profile:
    (folder / "file").write_text(json.dumps([tree, {}]))
    profile = formats.load(folder / "file")
    profile.check()
    return profile
