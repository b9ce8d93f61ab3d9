"""Drop-in for `triton.profiler.viewer`: profiles as Hatchet's graph frames, and the command `proton-viewer`.

The command is `bragg view` and needs nothing else. The functions need pandas and `llnl-hatchet`, as Proton's do.
"""

from __future__ import annotations

import importlib
import json
import re
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bragg.analyze.specs import UnknownDevice
from bragg.proton import specs
from bragg.proton.metric import FLOPS_WIDTHS
from bragg.proton.state import COMPUTE_METADATA_SCOPE_NAME, COMPUTE_METADATA_SCOPE_PREFIX
from bragg.views.text.style import printable

__all__ = [
    "apply_diff_profile",
    "derive_metrics",
    "filter_frames",
    "format_frames",
    "get_min_time_bytes",
    "get_min_time_flops",
    "get_raw_metrics",
    "main",
    "match_available_metrics",
    "parse",
    "print_tree",
    "read",
    "remove_frames",
    "show_metrics",
]

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SCALES = {"": 1.0, "g": 1e9, "t": 1e12}
_TIME = re.compile(r"(?P<avg>avg_)?(?P<base>(cpu_)?time)/(?P<unit>s|ms|us|ns)")
_RATE = re.compile(r"(?P<scale>[gt]?)(?P<what>byte|flop(8|16|32|64)?)/s")


def main() -> None:
    """Show a profile, as `bragg view` with the same options does."""
    sys.argv[:] = ["bragg", "view", *sys.argv[1:]]
    runpy.run_module("bragg", run_name="__main__", alter_sys=True)


def read(filename: str | Path) -> tuple[Any, list[str], list[str], dict[str, Any]]:
    """Read a file of Proton, JSON or MessagePack.

    Returns:
        The graph frame with inclusive metrics summed up, names of inclusive and of exclusive metrics, and the devices.

    Raises:
        ValueError: It holds no metric.
    """
    found = get_raw_metrics(load(filename))
    graph_frame, inclusive, exclusive, _ = found
    if not inclusive and not exclusive:
        raise ValueError(f"No metrics found in the input file {filename}")
    graph_frame.update_inclusive_columns()
    return found


def parse(
    metrics: Sequence[str],
    filename: str | Path,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> tuple[Any, list[str]]:
    """Read a file and compute metrics.

    Returns:
        The graph frame with the nodes that pass the filters, and the columns of the metrics.
    """
    graph_frame, inclusive, exclusive, devices = read(filename)
    columns = derive_metrics(graph_frame, metrics, inclusive, exclusive, devices)
    return filter_frames(graph_frame, include, exclude, threshold, columns[0]), columns


def get_raw_metrics(database: Any) -> tuple[Any, list[str], list[str], dict[str, Any]]:
    """A graph frame of what a file holds.

    Args:
        database: `[tree, devices]`, or a file that is open for reading.

    Returns:
        The graph frame, names of inclusive and of exclusive metrics, and the devices.
    """
    content = json.load(database) if hasattr(database, "read") else database
    frames = remove_frames(content)
    devices = frames.pop(1) if len(frames) > 1 else {}
    graph_frame = _hatchet().GraphFrame.from_literal(frames)
    inclusive = graph_frame.show_metric_columns()
    exclusive = [column for column in graph_frame.dataframe.columns if column not in inclusive]
    return graph_frame, inclusive, exclusive, devices


def remove_frames(database: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The trees without the launches of metadata functions, and without what has neither metrics nor children left."""
    kept = (_without_metadata(node) if "frame" in node else node for node in database)
    return [node for node in kept if node is not None]


def match_available_metrics(
    metrics: str | Sequence[str], inclusive_metrics: Sequence[str], exclusive_metrics: Sequence[str]
) -> list[str]:
    """Columns of metrics, which are named without regard to case, with or without the unit.

    Raises:
        RuntimeError: None of them exists.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    columns = {
        **{metric: metric for metric in reversed([*exclusive_metrics])},
        **{metric: f"{metric} (inc)" for metric in reversed([*inclusive_metrics])},
    }
    found = []
    for name in names:
        matching = [column for metric, column in columns.items() if name.lower() in (metric, _without_unit(metric))]
        found += matching[-1:]
    if not found:
        raise RuntimeError(f"Metric {names[-1].lower()} is not found. Use the --list flag to list available metrics")
    return found


def get_min_time_flops(df: Any, device_info: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Any:
    """Seconds that each row's floating-point operations take at the peak of its device: column `min_time`."""
    result = _min_times(df)
    for device_type, index, device in _devices(device_info):
        rows = df["device_id"] == index
        for column, width in _flops_columns(df):
            try:
                peak = specs.max_flops(device_type, device["arch"], width, device["num_sms"], device["clock_rate"])
            except UnknownDevice:
                peak = float("nan")
            result.loc[rows, "min_time"] += df.loc[rows, column].fillna(0) / peak
    return result


def get_min_time_bytes(df: Any, device_info: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Any:
    """Seconds that each row's bytes take at the peak bandwidth of its device: column `min_time`."""
    result = _min_times(df)
    for device_type, index, device in _devices(device_info):
        rows = df["device_id"] == index
        if "bytes" not in df.columns:
            continue
        try:
            peak = specs.max_bps(device_type, device["arch"], device["bus_width"], device["memory_clock_rate"])
        except UnknownDevice:
            peak = float("nan")
        result.loc[rows, "min_time"] += df.loc[rows, "bytes"].fillna(0) / peak
    return result


def derive_metrics(
    gf: Any,
    metrics: Sequence[str],
    inclusive_metrics: Sequence[str],
    exclusive_metrics: Sequence[str],
    device_info: Mapping[str, Any],
) -> list[str]:
    """Add a column for each metric.

    Returns:
        The columns.

    Raises:
        RuntimeError: A metric needs one that was not recorded.
        ValueError: A metric has an unknown unit.
    """
    columns = []
    for metric in metrics:
        column = _derive(gf, metric, inclusive_metrics, exclusive_metrics, device_info)
        (gf.inc_metrics if column.endswith("(inc)") else gf.exc_metrics).append(column)
        columns.append(column)
    return columns


def format_frames(gf: Any, format: str | None) -> Any:
    """Shorten the names of frames of source code.

    Args:
        gf: The graph frame.
        format: `full`, `file_function_line`, `function_line`, `file_function`.
    """
    if format == "file_function_line":
        gf.dataframe["name"] = gf.dataframe["name"].map(lambda name: name.split("/")[-1])
    elif format == "function_line":
        gf.dataframe["name"] = gf.dataframe["name"].map(lambda name: name.split(":")[-1])
    elif format == "file_function":
        gf.dataframe["name"] = gf.dataframe["name"].map(_file_and_function)
    return gf


def filter_frames(
    gf: Any,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
    metric: str | None = None,
) -> Any:
    """Keep some call paths.

    Args:
        gf: The graph frame.
        include: Expression that a name on the path must match.
        exclude: Expression that no name on the path may match.
        threshold: Least value of `metric`.
        metric: A column.
    """
    if include:
        gf = gf.filter(f'MATCH ("*")->(".", p)->("*") WHERE p."name" =~ "{include}"', squash=True)
    if exclude:
        query = importlib.import_module("hatchet.query")
        gf = gf.filter(query.NegationQuery(f'MATCH (".", p)->("*") WHERE p."name" =~ "{exclude}"'), squash=True)
    if threshold:
        gf = gf.filter(["*", {metric: f">= {threshold}"}], squash=True)
    return gf


def apply_diff_profile(
    gf: Any,
    derived_metrics: Sequence[str],
    diff_file: str | Path,
    metrics: Sequence[str],
    include: str | None,
    exclude: str | None,
    threshold: float | None,
) -> Any:
    """The graph frame minus that of another file."""
    other, _ = parse(metrics, diff_file, include, exclude, threshold)
    for frame in (gf, other):
        frame.inc_metrics = [column for column in derived_metrics if column.endswith("(inc)")]
        frame.exc_metrics = [column for column in derived_metrics if not column.endswith("(inc)")]
    return gf.sub(other)


def print_tree(
    gf: Any, metrics: Sequence[str], depth: int = 100, format: str | None = None, print_sorted: bool = False
) -> None:
    """Print the tree, and with `print_sorted` the frames by the first metric."""
    gf = format_frames(gf, format)
    gf.dataframe["name"] = gf.dataframe["name"].map(printable)
    write = sys.stdout.write
    write(f"{gf.tree(metric_column=list(metrics), expand_name=True, depth=depth, render_header=False)}\n")
    if print_sorted:
        write(f"Sorted kernels by metric {metrics[0]}\n")
        rows = gf.dataframe.sort_values(by=[metrics[0]], ascending=False).iloc[1:]
        for name, value in zip(rows["name"], rows[metrics[0]], strict=True):
            write(f"{name if len(name) <= 100 else name[:100] + '...':105} {value:.4}\n")


def show_metrics(file_name: str | Path) -> None:
    """Print the metrics of a file."""
    _, inclusive, exclusive, _ = get_raw_metrics(load(file_name))
    for kind, metrics in (("inclusive", inclusive), ("exclusive", exclusive)):
        sys.stdout.write(
            "\n".join([f"Available {kind} metrics:", *(f"- {printable(_without_unit(name))}" for name in metrics), ""])
        )


def load(path: str | Path) -> Any:
    content = Path(path).read_bytes()
    if content.lstrip()[:1] == b"[":
        try:
            return json.loads(content)
        except RecursionError:
            raise ValueError(f"{path} nests deeper than its reader goes") from None
    from bragg.formats.encodings import msgpack

    return msgpack.decode(content)


def _hatchet() -> Any:
    try:
        return importlib.import_module("hatchet")
    except ImportError as error:
        raise ImportError("Failed to import hatchet. `pip install llnl-hatchet` to get the correct version.") from error


def _without_metadata(node: dict[str, Any]) -> dict[str, Any] | None:
    name, children = node["frame"]["name"], node.get("children", [])
    if name == COMPUTE_METADATA_SCOPE_NAME or name.startswith(COMPUTE_METADATA_SCOPE_PREFIX):
        return None
    if not children:
        return node if node["metrics"] else None
    kept = [child for child in map(_without_metadata, children) if child is not None]
    return {**node, "children": kept} if kept else None


def _without_unit(metric: str) -> str:
    return metric.split("(")[0].strip().lower()


def _min_times(df: Any) -> Any:
    return type(df)(0.0, index=df.index, columns=["min_time"])


def _devices(
    device_info: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for device_type, devices in device_info.items():
        for index, device in devices.items():
            yield device_type, index, device


def _flops_columns(df: Any) -> Iterator[tuple[str, int]]:
    for width in FLOPS_WIDTHS:
        if f"flops{width}" in df.columns:
            yield f"flops{width}", width


def _derive(
    gf: Any, metric: str, inclusive: Sequence[str], exclusive: Sequence[str], devices: Mapping[str, Any]
) -> str:
    frame = gf.dataframe

    def column(name: str) -> str:
        return match_available_metrics(name, inclusive, exclusive)[0]

    def seconds(name: str) -> Any:
        found = column(name)
        return frame[found] * _SECONDS[found.split("(")[1].split(")")[0]]

    if metric == "util":
        limits = [get_min_time_bytes(frame, devices), get_min_time_flops(frame, devices)]
        lowest = limits[0]["min_time"].combine(limits[1]["min_time"], max)
        frame["util"] = (lowest / seconds("time")).where(frame["device_id"].notna())
        return "util"
    if time := _TIME.fullmatch(metric):
        values = seconds(time["base"]) / _SECONDS[time["unit"]]
        frame[f"{metric} (inc)"] = values / frame["count (inc)"] if time["avg"] else values
        return f"{metric} (inc)"
    if rate := _RATE.fullmatch(metric):
        source = "bytes" if rate["what"] == "byte" else rate["what"].replace("flop", "flops")
        frame[f"{metric} (inc)"] = frame[column(source)] / seconds("time") / _SCALES[rate["scale"]]
        return f"{metric} (inc)"
    name, _, unit = metric.partition("/")
    if not unit:
        return column(name)
    if unit != "%":
        raise ValueError(f"Unsupported unit {unit}")
    return _share(frame, metric, column(name))


def _share(frame: Any, metric: str, column: str) -> str:
    """Add a column of percentages."""
    is_inclusive = column.endswith("(inc)")
    total = frame[column].iloc[0] if is_inclusive else frame[column].sum()
    added = f"{metric} (inc)" if is_inclusive else metric
    frame[added] = frame[column] / total * 100.0
    return added


def _file_and_function(name: str) -> str:
    file = name.split("/")[-1].split(":")[0]
    return f"{file}@{name.split('@')[-1].split(':')[0]}"
