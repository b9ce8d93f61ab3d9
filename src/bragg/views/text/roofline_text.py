"""A roofline as a table."""

from __future__ import annotations

from bragg.analyze.roofline import Roof, Roofline, RooflinePoint
from bragg.analyze.work import BOUND_SHARE
from bragg.views.text.names import short_symbol
from bragg.views.text.style import Style
from bragg.views.text.units import share_text, time_text

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_NO_BYTES = "and nothing their bytes"
_HEADER = f"{'GPU time':>10}  {'share':>7}  {'flop/byte':>9}  {'reached':>14}  {'of roof':>8}  {'bound':<7}  name"


def roofline_lines(chart: Roofline, style: Style) -> list[str]:
    """The roofs, and a line for each point: those with most GPU time first."""
    return [
        *(_roof_line(roof, chart) for roof in chart.roofs),
        *([_measured_text(chart)] if chart.is_measured else []),
        "",
        style.bold(_HEADER),
        *(_point_line(point, chart) for point in chart.points),
    ]


def si_text(value: float, unit: str) -> str:
    """A rate to three digits: `988 Tflop/s`."""
    size, prefix = next((step for step in _PREFIXES if value >= step[0] * 0.9995), _PREFIXES[-1])
    return f"{value / size:.3g} {prefix}{unit}"


def short_name(name: str) -> str:
    """A kernel's name without what C++ adds to it."""
    return short_symbol(name) if name.startswith("_Z") or "::" in name else name


def summary_text(chart: Roofline) -> str:
    """What the picture shows, in one line for each point."""
    return "\n".join(
        [*(_roof_line(roof, chart) for roof in chart.roofs), *(_point_line(point, chart) for point in chart.points)]
    )


def _measured_text(chart: Roofline) -> str:
    if chart.widths:
        memory = "hardware counters their bytes of DRAM" if any(point.bytes for point in chart.points) else _NO_BYTES
        return f"Instructions that were counted give flops of kernels, {memory}."
    worked = "pipelines" if chart.counts_pipes else "tensor cores"
    told = "bytes of DRAM alone" if chart.counts_bytes_alone else f"bytes of DRAM and the time of {worked}"
    text = " and of ".join([f"Hardware counters measured {told}", *chart.caches])
    if all(point.bound or point.is_bound_by_latency for point in chart.points):
        return f"{text}."
    missing = [
        *(["L2 (bragg run --counters l2)"] if "L2" not in chart.caches else []),
        *(["tensor cores (bragg run --counters)"] if chart.counts_bytes_alone else []),
    ]
    others = f" Not measured: {', '.join(missing)}." if missing else ""
    return f"{text}: kernels that reach {100 * BOUND_SHARE:.0f} % of none of these are bound by something else.{others}"


def _roof_line(roof: Roof, chart: Roofline) -> str:
    drawn = {width: roof.flops_per_s[width] for width in chart.widths if width in roof.flops_per_s}
    peaks = [f"{si_text(rate, 'flop/s')} at {width} bit" for width, rate in drawn.items()]
    memory = [si_text(roof.bytes_per_s, "B/s")] if roof.bytes_per_s else []
    known = f"{roof.device}: {', '.join([*memory, *peaks])}" if memory or peaks else ""
    return "; ".join(filter(None, (known, roof.missing, f"source: {roof.source}" if roof.source else "")))


def _point_line(point: RooflinePoint, chart: Roofline) -> str:
    intensity = "n/a" if point.intensity is None else f"{point.intensity:{',.0f' if point.intensity >= 1e4 else '.4g'}}"
    reached = _reached(point)
    util = "n/a" if point.util is None else share_text(point.util)
    why = f"  ({point.absent})" if point.absent and not chart.is_measured else ""
    share = share_text(point.time_ns / chart.time_ns) if chart.time_ns else "n/a"
    return (
        f"{time_text(point.time_ns):>10}  {share:>7}  {intensity:>9}  {reached:>14}  {util:>8}  "
        f"{_bound(point):<7}  {short_name(point.name)}{why}"
    )


def _bound(point: RooflinePoint) -> str:
    return point.bounding_cache or point.bound or ("latency" if point.is_bound_by_latency else "n/a")


def _reached(point: RooflinePoint) -> str:
    """Flop/s, or for a kernel without flops byte/s."""
    rate, unit = (point.flops_per_s, "flop/s") if point.flops else (point.bytes_per_s, "B/s")
    return "n/a" if rate is None else si_text(rate, unit)
