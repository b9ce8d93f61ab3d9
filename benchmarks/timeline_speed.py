"""How smoothly the timeline of a report moves: frames a second while it is zoomed and panned. Needs no GPU.

Keys are held as a user holds them, so every frame zooms or pans; what is measured is the time between frames of
Chromium, and of each frame the time in our script. Without Playwright or Chromium there are no rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import harness
from bragg.views.web.page import page as page_of
from bragg.views.web.report_payload import report_payload
from report_page import browser

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.large_traces import training_trace

SIZES = (200_000, 500_000)
KEYS = "wwwdasswwdddaaass"
HOLD_MS = 600

# Notes how long each callback of a frame takes.
_NOTE_SCRIPT = """
    window.script_ms = [];
    const ask = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = callback => ask(now => {
        const start = performance.now();
        callback(now);
        window.script_ms.push(performance.now() - start);
    });
    window.ask_frame = ask;
"""
_MOVE = """async ([keys, hold_ms]) => {
    window.script_ms.length = 0;
    const between = [];
    let last = 0, isDone = false;
    const note = now => {
        if (last) between.push(now - last);
        last = now;
        if (!isDone) ask_frame(note);
    };
    ask_frame(note);
    for (const key of keys) {
        document.dispatchEvent(new KeyboardEvent("keydown", {key}));
        await new Promise(done => setTimeout(done, hold_ms));
        document.dispatchEvent(new KeyboardEvent("keyup", {key}));
    }
    isDone = true;
    return {between, script: window.script_ms};
}"""


def measure(started: Any, file: Path, n_slices: int) -> dict[str, Any]:
    """One row of the result."""
    page = started.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(_NOTE_SCRIPT)
    page.goto(f"file://{file}#view=timeline")
    page.locator(".timeline-lanes").wait_for()
    drawn_ms = page.evaluate("() => new Promise(done => ask_frame(() => ask_frame(() => done(performance.now()))))")
    page.locator(".timeline-totals td").first.wait_for()
    times = page.evaluate(_MOVE, [list(KEYS), HOLD_MS])
    page.close()
    between, script = sorted(times["between"]), sorted(times["script"])
    return {
        "slices": n_slices,
        "page_mb": round(file.stat().st_size / 1e6, 2),
        "drawn_ms": round(drawn_ms),
        "frames": len(between),
        "median_frames_per_s": round(1000 / between[len(between) // 2], 1),
        "p95_frame_ms": round(between[len(between) * 95 // 100], 1),
        "median_script_ms": round(script[len(script) // 2], 2),
        "p95_script_ms": round(script[len(script) * 95 // 100], 2),
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, browser() as started:
        for n_slices in SIZES if started is not None else ():
            file = Path(folder) / f"{n_slices}.html"
            file.write_text(page_of([report_payload(training_trace(n_slices), "trace")], "trace"), encoding="utf-8")
            rows.append(measure(started, file, n_slices))
    harness.report("timeline_speed", rows, arguments.out)


if __name__ == "__main__":
    main()
