"""A roofline as a picture: flop/s over flop/byte, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from bragg.analyze.roofline import Roof, Roofline, RooflinePoint
from bragg.views.svg import document, element, text
from bragg.views.text.roofline_text import short_name, si_text, summary_text
from bragg.views.text.style import PLAIN, printable
from bragg.views.text.units import share_text

_WIDTH, _HEIGHT = 1080, 600
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 24, 56, 66
_NAMES = 768  # The axes end here, and the names of the points begin.
_LINE = 20
_LETTER = 7.0  # Width of a letter at 12 px in the wider of the usual fonts.
_LARGEST_RADIUS, _SMALLEST_RADIUS = 26.0, 4.0
_MAX_NAMES = 22
_LONGEST_NAME = 27
_ROOM_FOR_NUMBER = 9.0
_DASHES = ("", "8 4", "3 3", "12 3 3 3")
_STYLE = """
svg{color-scheme:light dark;font:12px system-ui,sans-serif}
.back{fill:#fff}.ink{fill:#1b1f24}.faint{fill:#5c6570}.grid{stroke:#e4e7eb}.frame{stroke:#8b949e;fill:none}
.roof{stroke:#1b1f24;stroke-width:1.6;fill:none}
.compute{fill:#c8553d;stroke:#c8553d}.memory{fill:#2468c2;stroke:#2468c2}
circle{fill-opacity:.55;stroke-width:1.2}
text.halo{paint-order:stroke;stroke:#fff;stroke-width:3px}
@media (prefers-color-scheme:dark){
.back{fill:#14181d}.ink{fill:#e6e9ec}.faint{fill:#9aa4ae}.grid{stroke:#2a3037}.frame{stroke:#68727d}
.roof{stroke:#e6e9ec}.compute{fill:#f08a70;stroke:#f08a70}.memory{fill:#6aa5f5;stroke:#6aa5f5}
text.halo{stroke:#14181d}}
"""


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis over whole decades.

    Attributes:
        low: Its lower end, a power of ten.
        high: Its upper end.
        start: Pixel of the lower end.
        end: Pixel of the upper end.
    """

    low: float
    high: float
    start: float
    end: float

    def pixel(self, value: float) -> float:
        """Where a value is."""
        share = math.log10(value / self.low) / math.log10(self.high / self.low)
        return self.start + share * (self.end - self.start)

    @property
    def decades(self) -> list[float]:
        """The powers of ten, both ends included."""
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def roofline_svg(chart: Roofline, title: str) -> str:
    """The picture of a roofline: an SVG document that needs nothing else, for light and dark pages.

    Args:
        chart: What to draw; points without a place are listed below the axes.
        title: Its headline.
    """
    drawn = [point for point in chart.points if not point.absent]
    widths = chart.widths or (16,)
    x, y = _axes(chart.roofs, drawn, widths)
    headline = text(title, _LEFT, 30, class_="ink", font_size="16", font_weight="600")
    body = [
        element("rect", class_="back", width=_WIDTH, height=_HEIGHT),
        headline,
        *_grid(x, y),
        *(shape for index in range(len(chart.roofs)) for shape in _roof(chart, index, widths, x, y)),
        *_points(drawn, chart, x, y),
        *_names(drawn),
        *_legend(),
        *_footer(chart),
    ]
    return document(_WIDTH, _HEIGHT, _STYLE, title, summary_text(chart), *body)


def _axes(roofs: Sequence[Roof], points: Sequence[RooflinePoint], widths: Sequence[int]) -> tuple[_Axis, _Axis]:
    """Axes that hold all points and the places where roofs meet, with room for slopes and levels beside them."""
    peaks = [roof.flops_per_s[width] for roof in roofs for width in widths if width in roof.flops_per_s]
    ridges = [
        roof.flops_per_s[width] / roof.bytes_per_s
        for roof in roofs
        for width in widths
        if roof.bytes_per_s and width in roof.flops_per_s
    ]
    intensities = [point.intensity for point in points if point.intensity]
    rates = [point.flops_per_s for point in points if point.flops_per_s]
    return (
        _axis([*intensities, *(ridge * room for ridge in ridges for room in (1 / 6, 4))] or [1.0], _LEFT, _NAMES - 12),
        _axis([*rates, *peaks, *([] if rates else [peak / 1e4 for peak in peaks])] or [1e9], _HEIGHT - _BOTTOM, _TOP),
    )


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    """The decades around values, with room of a third of a decade for the marks themselves."""
    low = 10.0 ** math.floor(math.log10(min(values)) - 0.3)
    high = 10.0 ** math.ceil(math.log10(max(values)) + 0.3)
    return _Axis(low, high, start, end)


def _grid(x: _Axis, y: _Axis) -> Iterator[str]:
    for value in x.decades:
        at = x.pixel(value)
        yield element("line", class_="grid", x1=at, x2=at, y1=y.start, y2=y.end)
        yield text(f"{value:g}", at, y.start + 18, class_="faint", text_anchor="middle")
    for value in y.decades:
        at = y.pixel(value)
        yield element("line", class_="grid", x1=x.start, x2=x.end, y1=at, y2=at)
        yield text(si_text(value, "flop/s"), x.start - 8, at + 4, class_="faint", text_anchor="end")
    yield element("rect", class_="frame", x=x.start, y=y.end, width=x.end - x.start, height=y.start - y.end)
    yield text(
        "arithmetic intensity, flop/byte", (x.start + x.end) / 2, y.start + 36, class_="ink", text_anchor="middle"
    )


def _roof(chart: Roofline, index: int, widths: Sequence[int], x: _Axis, y: _Axis) -> Iterator[str]:
    """The slope of the memory and the level of each width, with what they are."""
    roof = chart.roofs[index]
    dash = _DASHES[index % len(_DASHES)]
    name = f"{roof.device}: " if len(chart.roofs) > 1 else ""
    peaks = {width: roof.flops_per_s[width] for width in widths if width in roof.flops_per_s}
    by_rate: dict[float, list[str]] = {}
    for width, peak in peaks.items():
        by_rate.setdefault(peak, []).append(str(width))
    for peak, its_widths in by_rate.items():
        from_x = max(peak / roof.bytes_per_s, x.low) if roof.bytes_per_s else x.low
        yield _line(from_x, peak, x.high, peak, x, y, dash)
        label = f"{name}{' and '.join(its_widths)} bit, {si_text(peak, 'flop/s')}"
        yield _level_label(label, x.pixel(from_x), y.pixel(peak), x.end)
    if roof.bytes_per_s:
        yield from _slope(roof.bytes_per_s, max(peaks.values(), default=y.high), name, x, y, dash)


def _level_label(label: str, corner: float, level: float, end: float) -> str:
    """Left of the corner of a roof, where no point can be; right above it where there is no room."""
    if corner - 8 - len(label) * _LETTER > _LEFT:
        return text(label, corner - 8, level + 4, class_="ink halo", text_anchor="end")
    return text(label, end - 6, level - 6, class_="ink halo", text_anchor="end")


def _slope(bytes_per_s: float, highest: float, name: str, x: _Axis, y: _Axis, dash: str) -> Iterator[str]:
    from_x = max(x.low, y.low / bytes_per_s)
    to_x = min(x.high, highest / bytes_per_s)
    if to_x <= from_x:
        return
    yield _line(from_x, from_x * bytes_per_s, to_x, to_x * bytes_per_s, x, y, dash)
    middle = math.sqrt(from_x * to_x)
    at_x, at_y = x.pixel(middle), y.pixel(middle * bytes_per_s)
    rise = (y.pixel(to_x * bytes_per_s) - at_y) / (x.pixel(to_x) - at_x)
    turn = f"rotate({math.degrees(math.atan(rise)):.1f} {at_x:.1f} {at_y:.1f})"
    label = f"{name}memory, {si_text(bytes_per_s, 'B/s')}"
    yield text(label, at_x, at_y - 7, class_="ink halo", text_anchor="middle", transform=turn)


def _line(from_x: float, from_y: float, to_x: float, to_y: float, x: _Axis, y: _Axis, dash: str) -> str:
    ends = {"x1": x.pixel(from_x), "y1": y.pixel(from_y), "x2": x.pixel(to_x), "y2": y.pixel(to_y)}
    return element("line", class_="roof", **ends, **({"stroke_dasharray": dash} if dash else {}))


def _points(points: Sequence[RooflinePoint], chart: Roofline, x: _Axis, y: _Axis) -> Iterator[str]:
    """The points, largest below, then the numbers that lead to their names."""
    numbers = []
    for number, point in enumerate(points, start=1):
        at_x, at_y = x.pixel(point.intensity or x.low), y.pixel(point.flops_per_s or y.low)
        radius = max(_SMALLEST_RADIUS, _LARGEST_RADIUS * math.sqrt(point.time_ns / chart.time_ns))
        tooltip = element("title", escape(printable(_tooltip(point, chart), "\n")))
        yield element("circle", tooltip, class_=point.bound or "memory", cx=at_x, cy=at_y, r=radius)
        if number <= _MAX_NAMES:
            beside = 0 if radius > _ROOM_FOR_NUMBER else radius + 7
            numbers.append(text(str(number), at_x + beside, at_y + 4, class_="ink halo", text_anchor="middle"))
    yield from numbers


def _names(points: Sequence[RooflinePoint]) -> Iterator[str]:
    """Number, name and utilisation of the points with most time, beside the axes."""
    yield text("of roof", _WIDTH - _RIGHT, _TOP + 10, class_="faint", text_anchor="end")
    for number, point in enumerate(points[:_MAX_NAMES], start=1):
        at_y = _TOP + 10 + number * _LINE
        yield text(str(number), _NAMES + 16, at_y, class_="faint", text_anchor="end")
        full = printable(point.name)
        name = element("title", escape(full)) + escape(PLAIN.cut(short_name(full), _LONGEST_NAME))
        yield element("text", name, x=_NAMES + 24, y=at_y, class_="ink")
        util = "n/a" if point.util is None else share_text(point.util)
        yield text(util, _WIDTH - _RIGHT, at_y, class_="ink", text_anchor="end")
    if len(points) > _MAX_NAMES:
        rest = f"and {len(points) - _MAX_NAMES} more"
        yield text(rest, _NAMES + 24, _TOP + 10 + (_MAX_NAMES + 1) * _LINE, class_="faint")


def _tooltip(point: RooflinePoint, chart: Roofline) -> str:
    util = "" if point.util is None else f"{share_text(point.util)} of the {point.bound} roof"
    reached = f"{si_text(point.flops_per_s or 0, 'flop/s')} at {point.intensity or 0:.3g} flop/byte"
    share = f"{share_text(point.time_ns / chart.time_ns)} of GPU time"
    return "\n".join(filter(None, (point.name, reached, util, share)))


def _legend() -> Iterator[str]:
    for row, bound in enumerate(("memory", "compute")):
        at = _WIDTH - _RIGHT - 330 + row * 120
        yield element("circle", class_=bound, cx=at, cy=26, r=6)
        yield text(f"{bound} bound", at + 11, 30, class_="ink")
    yield text("area: GPU time", _WIDTH - _RIGHT, 30, class_="faint", text_anchor="end")


def _footer(chart: Roofline) -> Iterator[str]:
    """Kernels that are not drawn, with the reason."""
    absent = [f"{short_name(point.name)} ({point.absent})" for point in chart.points if point.absent]
    missing = [roof.missing for roof in chart.roofs if roof.missing]
    notes = [f"not drawn: {', '.join(absent)}"] if absent else missing
    if notes:
        longest = int((_WIDTH - 2 * _RIGHT) / _LETTER)
        yield text(PLAIN.cut("; ".join(notes), longest), _RIGHT, _HEIGHT - 10, class_="faint")
