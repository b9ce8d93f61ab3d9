"""A tally as tables for the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from bragg.analyze.tally import Section, Tally, TallyRow
from bragg.views.text.names import short_symbol
from bragg.views.text.style import Style, printable
from bragg.views.text.units import count_text, share_text, value_text

_Text = Callable[[TallyRow, str], str]
_LEAST_NAME_WIDTH = 20


def _of(name: str) -> _Text:
    def text(row: TallyRow, unit: str) -> str:
        value = getattr(row, name)
        return "" if value is None else value_text(value, unit)

    return text


def _quantile(index: int) -> _Text:
    return lambda row, unit: "" if row.quantiles is None else value_text(row.quantiles[index], unit)


_COLUMNS: dict[str, _Text] = {
    "total": _of("total"),
    "share": lambda row, _unit: share_text(row.share),
    "calls": lambda row, _unit: f"{row.calls:,}",
    "average": _of("average"),
    "min": _of("least"),
    "p50": _quantile(0),
    "p95": _quantile(1),
    "p99": _quantile(2),
    "max": _of("most"),
    "bus GB/s": lambda row, _unit: "" if row.bus_bytes_per_s is None else _rate_text(row.bus_bytes_per_s / 1e9),
    "imbalance": lambda row, _unit: "" if row.imbalance is None else share_text(row.imbalance),
    "rank of max": lambda row, _unit: "" if row.worst_rank is None else str(row.worst_rank),
}


def _rate_text(rate: float) -> str:
    """Two digits: the shortest call is not the usual one."""
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"


def tally_json(tally: Tally) -> dict[str, Any]:
    """JSON values, times in ns, shares of 1; what is not known is null."""
    return {
        "hosts": tally.n_hosts,
        "processes": tally.n_processes,
        "threads": tally.n_threads,
        "devices": tally.n_devices,
        "backends": list(tally.backends),
        "sections": [
            {"title": section.title, "unit": section.unit, "rows": [_row_json(row) for row in section.rows]}
            for section in tally.sections
        ],
        "notes": list(tally.notes),
    }


def _row_json(row: TallyRow) -> dict[str, Any]:
    values = asdict(row)
    p50, p95, p99 = values.pop("quantiles") or (None, None, None)
    return {**values, "p50": p50, "p95": p95, "p99": p99, "errors": None}


def tally_lines(tally: Tally, style: Style, max_rows: int | None) -> list[str]:
    """A table for each section.

    Args:
        tally: The tally.
        style: How to decorate.
        max_rows: Of each section; None: all.
    """
    lines = [style.bold(_counts(tally))]
    for section in tally.sections:
        lines += ["", style.bold(section.title), *_table(section, style, max_rows)]
    return [*lines, *(["", *map(style.dim, tally.notes)] if tally.notes else [])]


def _counts(tally: Tally) -> str:
    counts = [
        f"backend {printable(', '.join(tally.backends))}",
        count_text(tally.n_hosts, "host"),
        count_text(tally.n_processes, "process", "processes"),
        *([count_text(tally.n_threads, "thread")] if tally.n_threads is not None else []),
        *([count_text(tally.n_devices, "device")] if tally.n_devices else []),
    ]
    return " | ".join(counts)


def _table(section: Section, style: Style, max_rows: int | None) -> Iterator[str]:
    """Columns in which no row has a value are left out."""
    rows = section.rows[:max_rows]
    texts = {title: [text(row, section.unit) for row in rows] for title, text in _COLUMNS.items()}
    filled = {title: column for title, column in texts.items() if any(column)}
    widths = {title: max(len(title), *map(len, column)) for title, column in filled.items()}
    yield style.dim("  ".join([*(title.rjust(widths[title]) for title in filled), "name"]))
    taken = sum(widths.values()) + 2 * len(widths)
    room = None if style.width is None else max(style.width - taken, _LEAST_NAME_WIDTH)
    for number, row in enumerate(rows):
        cells = [column[number].rjust(widths[title]) for title, column in filled.items()]
        name = printable(short_symbol(row.name) if row.is_symbol else row.name)
        yield "  ".join([*cells, style.cut(name, room)])
    if len(rows) < len(section.rows):
        yield style.dim(f"{count_text(len(section.rows) - len(rows), 'more row')}; --lines 0 shows all")
