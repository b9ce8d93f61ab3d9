"""How long `bragg report` takes, what its page weighs, and how soon a browser shows it. Needs no GPU.

Three profiles: a call tree of 50,000 nodes, a trace of 500,000 slices, half launches and half what they caused, and the
largest recording of a real program, GPT-2 in Hugging Face's Trainer. The browser's figures are left out where
Playwright or Chromium is missing.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import harness
from bragg import formats
from bragg.model import FrameKind, Profile, SliceTable, TrackKind, TrackTable
from bragg.views.web.page import page
from bragg.views.web.report_payload import report_payload
from view_speed import synthetic_profile

NODES = 50_000
SLICES = 500_000
RECORDING = Path(__file__).parents[1] / "tests/golden/recordings/h100-trainer_gpt2.bragg"
ROUNDS = 5
PAN_FRAMES = 60
# From the beginning of the navigation to the first frame after the view was drawn.
_INTERACTIVE_MS = """() => new Promise((done) => requestAnimationFrame(() => setTimeout(
    () => done(performance.now()), 0)))"""
# Zooms in around the middle, then moves on by an eighth of the window in each frame; the median time of a frame, ms.
_PAN_MS = """async (n_frames) => {
    const canvas = [...document.querySelectorAll("main canvas")].sort((a, b) => b.clientHeight - a.clientHeight)[0];
    const box = canvas.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + 60];
    const wheel = (more) => canvas.dispatchEvent(
        new WheelEvent("wheel", {clientX: x, clientY: y, bubbles: true, cancelable: true, ...more}));
    const frame = () => new Promise(requestAnimationFrame);
    const times = [];
    for (let i = 0; i < n_frames; i++) {
        const start = await frame();
        if (i < 20) wheel({deltaY: -100, ctrlKey: true}); else wheel({deltaX: box.width / 8, shiftKey: true});
        times.push((await frame()) - start);
    }
    return times.sort((a, b) => a - b)[n_frames >> 1];
}"""


def trace_profile() -> Profile:
    """The tree of `view_speed.py` with a timeline: one thread that launches, four streams that work."""
    profile = synthetic_profile(NODES)
    random = np.random.default_rng(0)
    half = SLICES // 2
    kernels = np.flatnonzero(profile.tree.kind == FrameKind.KERNEL)
    node = random.choice(kernels, half).astype(np.int32)
    launch_start = np.cumsum(random.integers(2_000, 20_000, half)) + 1_700_000_000_000_000_000
    duration = random.lognormal(9, 1, half).astype(np.int64)
    slices = SliceTable(
        start_ns=np.concatenate([launch_start, launch_start + random.integers(3_000, 9_000, half)]),
        duration_ns=np.concatenate([np.full(half, 1_500), duration]),
        node=np.concatenate([profile.tree.parent[node], node]),
        track=np.concatenate([np.zeros(half), 1 + random.integers(0, 4, half)]).astype(np.int32),
        correlation=np.tile(np.arange(1, half + 1), 2),
    ).sorted()
    tracks = TrackTable(
        kind=np.array([TrackKind.HOST_THREAD, *[TrackKind.GPU_STREAM] * 4], np.uint8),
        process=np.full(5, 1, np.int32),
        device=np.array([-1, 0, 0, 0, 0], np.int32),
        context=np.zeros(5, np.int64),
        stream=np.arange(1, 6),
        name=["main", "", "", "", ""],
    )
    return replace(profile, slices=slices, tracks=tracks)


def build_row(profile: Profile, file: Path) -> dict[str, Any]:
    """Seconds from the profile in memory to the page on disk, and its size."""

    def build() -> None:
        file.write_text(page([report_payload(replace(profile), file.name)], file.name), encoding="utf-8")

    times = [harness.seconds(build) for _ in range(ROUNDS)]
    return {"build_s": round(statistics.median(times), 3), "size_mb": round(file.stat().st_size / 1e6, 3)}


@contextmanager
def browser() -> Iterator[Any]:
    """A running Chromium; None where it or Playwright is missing."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        chromium = None
    if chromium is None:
        yield None
        return
    with sync_playwright() as running:
        started = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


def interactive_ms(started: Any, file: Path, view: str) -> float:
    """From navigation to a view that was drawn, median of several openings, ms."""
    times = []
    for _ in range(ROUNDS):
        opened = started.new_page(viewport={"width": 1280, "height": 800})
        opened.goto(f"file://{file}#view={view}")
        opened.locator(f"main .{view}").wait_for()
        times.append(opened.evaluate(_INTERACTIVE_MS))
        opened.close()
    return float(round(statistics.median(times)))


def pan_ms(started: Any, file: Path) -> float:
    """Median time of a frame while the timeline is zoomed and moved, ms."""
    opened = started.new_page(viewport={"width": 1280, "height": 800})
    opened.goto(f"file://{file}#view=timeline")
    opened.locator("main canvas").first.wait_for()
    found = float(opened.evaluate(_PAN_MS, PAN_FRAMES))
    opened.close()
    return round(found, 1)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as directory, browser() as started:
        real = formats.load(RECORDING)
        for name, profile, views in (
            (f"GPT-2: {len(real.tree):,} nodes, {len(real.slices):,} slices", real, ("summary", "flame", "timeline")),
            (f"{NODES:,} nodes", synthetic_profile(NODES), ("summary", "flame", "kernels")),
            (f"{SLICES:,} slices", trace_profile(), ("summary", "timeline")),
        ):
            file = Path(directory) / "page.html"
            row = {"profile": name, **build_row(profile, file)}
            if started is not None:
                row |= {f"{view}_ms": interactive_ms(started, file, view) for view in views}
                row |= {"pan_frame_ms": pan_ms(started, file)} if len(profile.slices) else {}
            rows.append(row)
    harness.report("report_page", rows, arguments.out)


if __name__ == "__main__":
    main()
