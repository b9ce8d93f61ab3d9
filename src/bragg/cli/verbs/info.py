"""`bragg info`: what a profile holds."""

from __future__ import annotations

import json
import sys
import zipfile
from collections import Counter
from dataclasses import asdict
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bragg.cli.console import stream_style, write_json, write_lines
from bragg.cli.profile_file import loaded, newest_profile, readable_argument

if TYPE_CHECKING:
    from bragg.model import Profile
    from bragg.views.text.run_facts import RunFacts
    from bragg.views.text.style import Style


# Longer tables, such as those of modules and of the durations of regions, are for programs.
_MAX_FACT = 400
_N_NAMES = 5
_ALMOST_ALL = 0.9
# What the file format calls a plain number.
_UNITS = {"1": "count"}
_SHOWN_BELOW = "inside_kernels"  # as sentences

_EPILOG = """\b
Examples:
  bragg info train.bragg
  bragg info train.bragg --json
"""


@click.command(epilog=_EPILOG)
@readable_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(file: Path | None, as_json: bool) -> None:
    """Show how FILE was recorded, what it holds, and what takes up its space."""
    from bragg.analyze.steady_memory import steady_memory
    from bragg.analyze.steady_telemetry import steady_telemetry
    from bragg.analyze.wall.parts import wall_parts
    from bragg.views.text.memory_facts import memory_json
    from bragg.views.text.nccl_facts import nccl_json
    from bragg.views.text.run_facts import RunFacts
    from bragg.views.text.telemetry_facts import telemetry_json
    from bragg.views.text.wall_line import wall_json, wall_lines

    path = newest_profile(file)
    profile = loaded(path)
    run = RunFacts.of(profile)
    facts = {
        "file": str(path),
        "size_bytes": path.stat().st_size,
        "part_bytes": _part_bytes(path),
        "rows": _rows(profile),
        "counters": _counters(profile),
        "metrics": {name: {"unit": metric.unit, "kind": metric.kind.value} for name, metric in profile.metrics.items()},
        "meta": profile.meta,
        "wall": wall_json(parts := wall_parts(profile)),
        "telemetry": telemetry_json(profile.meta),
        "steady_telemetry": [asdict(each) for each in steady_telemetry(profile, parts.steady if parts else None)],
        "memory": memory_json(profile.meta),
        "nccl": nccl_json(profile.meta),
        "steady_memory": [asdict(each) for each in steady_memory(profile, parts.steady if parts else None)],
        "completeness": run.completeness.word,
        "warnings": list(run.warnings()),
    }
    if as_json:
        write_json("info", facts)
    else:
        style = stream_style(sys.stdout)
        write_lines(_lines(run, facts, wall_lines(parts, style), style))


def _part_bytes(path: Path) -> dict[str, int]:
    """Compressed bytes of each part of an archive, largest first; empty for a capture."""
    if not zipfile.is_zipfile(path):
        return {}
    sizes: Counter[str] = Counter()
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            sizes[member.filename.partition("/")[0]] += member.compress_size
    return dict(sizes.most_common())


def _rows(profile: Profile) -> dict[str, int]:
    return {
        "call paths": len(profile.tree),
        "frames": len(profile.tree.frames),
        "tracks": len(profile.tracks),
        "slices": len(profile.slices),
        "kernel configurations": len(profile.kernels),
        "counter values": len(profile.counters),
        "findings": len(profile.carried),
        "source files": len(profile.sources),
    }


def _counters(profile: Profile) -> list[dict[str, Any]]:
    from bragg.model.kernels.counters import kernel_counters

    return [
        {
            "device": row.device,
            "counter": row.counter,
            "kernel": row.kernel,
            "value": row.rate if row.is_told else None,
            "error": row.error if row.is_told else None,
            "sampled_ns": row.sampled_ns,
            "sampled_share": row.sampled_share,
        }
        for row in kernel_counters(profile)
    ]


def _counter_lines(counters: list[dict[str, Any]]) -> list[str]:
    from bragg.views.text.roofline_text import short_name
    from bragg.views.text.units import share_text

    if not counters:
        return []
    lines = ["", "counters while a kernel runs, of those that ran longest"]
    for title, rows in groupby(counters, key=lambda row: f"  GPU {row['device']}, {row['counter']}"):
        lines.append(title)
        for row in islice(rows, _N_NAMES):
            value = "too short to tell" if row["value"] is None else f"{row['value']:.4g} +- {row['error']:.2g}"
            share = row["sampled_share"]
            part = f" (in {share_text(share)} of its time)" if share < _ALMOST_ALL else ""
            lines.append(f"    {value:<22} {short_name(row['kernel'])}{part}")
    return lines


def _steady_line(told: dict[str, Any]) -> str:
    """`GPU 0 in the steady state: power 412 W mean, 17.7 J a step; SM clock 1,755 MHz (60 samples)`."""
    power = "" if told["power_w"] is None else f"power {told['power_w']:,.0f} W mean"
    step = "" if told["step_j"] is None else f"{told['step_j']:,.3g} J a step"
    clock = "" if told["sm_clock_mhz"] is None else f"SM clock {told['sm_clock_mhz']:,.0f} MHz"
    texts = "; ".join(filter(None, [", ".join(filter(None, [power, step])), clock]))
    return f"GPU {told['device']} in the steady state: {texts} ({told['samples']:,} samples)"


def _steady_memory_line(told: dict[str, Any]) -> str:
    """`GPU 0 in the steady state: memory grows by 1.2 MB a step; 0 B more from CUDA`."""
    from bragg.views.text.units import bytes_text

    grown = told["growth_bytes"]
    growth = {None: "too few steps to tell whether memory grows", 0: "memory does not grow"}.get(grown)
    growth = growth or f"memory grows by {bytes_text(round(grown))} a step"
    return f"GPU {told['device']} in the steady state: {growth}; {bytes_text(told['reserved_bytes'])} more from CUDA"


def _lines(run: RunFacts, facts: dict[str, Any], wall: list[str], style: Style) -> list[str]:
    from bragg.views.terminal.header import header_lines
    from bragg.views.text.clock_facts import clock_lines
    from bragg.views.text.units import bytes_text

    sections = {
        "holds": {name: f"{count:,}" for name, count in facts["rows"].items()},
        "metrics": {
            name: ", ".join(filter(None, (_UNITS.get(metric["unit"], metric["unit"]), metric["kind"])))
            for name, metric in facts["metrics"].items()
        },
        "size": {
            "file": bytes_text(facts["size_bytes"]),
            **{part: bytes_text(size) for part, size in facts["part_bytes"].items()},
        },
        "recorded": {name: _text(value) for name, value in facts["meta"].items() if name != _SHOWN_BELOW},
    }
    lines = header_lines(run, facts["file"], style, wall, is_whole=True)
    for title, rows in sections.items():
        width = max(map(len, rows), default=0)
        lines += ["", title, *(f"  {name:<{width}}  {text}" for name, text in rows.items())]
    clocks = [*clock_lines(facts["meta"])]
    steady = [*map(_steady_line, facts["steady_telemetry"]), *map(_steady_memory_line, facts["steady_memory"])]
    lines += ["", *steady] if steady else []
    return [*lines, *_counter_lines(facts["counters"]), *(["", *clocks] if clocks else [])]


def _text(value: Any) -> str:
    """A fact on one line; of counts those that are not 0, of a long table its first names: --json has all of it."""
    if isinstance(value, dict) and value and all(name.isidentifier() and type(value[name]) is int for name in value):
        counts = ", ".join(f"{name} {count:,}" for name, count in value.items() if count)
        return "; ".join(filter(None, [counts, "" if all(value.values()) else "others: 0"]))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if (
        len(text) <= _MAX_FACT
        or not isinstance(value, dict)
        or not all(isinstance(row, dict) for row in value.values())
    ):
        return text
    names = list(value)
    rest = f" and {len(names) - _N_NAMES} more" if len(names) > _N_NAMES else ""
    return f"{', '.join(names[:_N_NAMES])}{rest}; --json shows what is known of them"
