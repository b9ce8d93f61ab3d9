"""How much longer a program took because it was recorded: the one place that decides.

The recorder counts its calls, times some of them at random while the program runs, and knows the rest from a
calibration or from measurements of CUPTI. What runs on the host makes the program wait only as far as the GPU waits for
the host: a host that is ahead of the GPU hides it. What records cost on the GPU counts where the host is ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bragg.model.facts import Facts
from bragg.model.meta.run import Run

# Names in META, and what readers call them. `records` are CUPTI's kernel records, seen from the launch.
_HOST_PARTS = {
    "records": "kernel records",
    "launches": "launches and their call paths",
    "operators": "operators",
    "scopes": "scopes",
    "values": "metrics",
    "api_calls": "GPU API calls",
    "samples": "host samples",
    "waits": "waits for the recorder",
    "recorder": "recorder's own threads",
}
_GPU_PART = "gpu_records"
# What the recorder does in the middle of the program's code, which then finds its own code and data displaced from the
# caches. That time is the program's and nobody counts it: beside Llama's generate on an H100 up to two thirds of what
# is counted. Below this slowdown it is within 2 points.
_DISPLACED = "caches that the program's code finds displaced"
_DISPLACING = ("records", "launches", "operators", "scopes", "values", "api_calls")
_NEVER_ALL = 0.95  # of a time
_LEAST_DISPLACED = 0.05
_LEAST_WORK_NS = 20_000_000  # Less work gives no share: one late call would decide it.


@dataclass(frozen=True)
class OverheadPart:
    """One cause.

    Attributes:
        name: What it is.
        cost_ns: Of the program's threads, or the GPU.
        calls: How many there were; None where they have no number.
    """

    name: str
    cost_ns: int
    calls: int | None

    def to_json(self) -> dict[str, Any]:
        """JSON values, with the cost of one call."""
        per_call = {} if not self.calls else {"calls": self.calls, "ns_per_call": round(self.cost_ns / self.calls, 1)}
        return {"cost_ns": self.cost_ns, **per_call}


@dataclass(frozen=True)
class Overhead:
    """What recording cost.

    Attributes:
        slowdown: Time that it added by the time that the program would have taken, while it was at work: from the first
            to the last event, without pauses of more than 10 s.
        added_ns: What it added, as far as it is known.
        work_ns: That time as recorded.
        parts: Causes, the largest first. Together they may exceed what was added: the GPU's work hides some.
        unknown: Causes whose cost is not known. Empty: none is known to matter.
        is_estimated: Some part comes from a calibration, which the program's own may fall below.
    """

    slowdown: float
    added_ns: float
    work_ns: int
    parts: tuple[OverheadPart, ...]
    unknown: tuple[str, ...]
    is_estimated: bool

    @property
    def is_at_least(self) -> bool:
        """What is known was measured, and is not all."""
        return bool(self.unknown) and not self.is_estimated

    @property
    def left_out(self) -> tuple[str, ...]:
        """Of the unknown causes those that the recorder knows nothing of."""
        return tuple(name for name in self.unknown if name != _DISPLACED)

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "slowdown": round(self.slowdown, 5),
            "is_at_least": self.is_at_least,
            "unknown": list(self.unknown),
            "work_ns": self.work_ns,
            "parts": {part.name: part.to_json() for part in self.parts},
        }


def overhead_of(meta: Mapping[str, Any]) -> Overhead | None:
    """What META tells; None where it does not: other recorders, earlier versions, and less than 20 ms of work."""
    run = Run(meta)
    return _overhead(run, _of_work(run))


def overhead_within(meta: Mapping[str, Any], share: float, span_ns: int, busy_ns: float) -> Overhead | None:
    """An estimate for a part of the run, since steps that launch much are slowed by more than the run; None: as above.

    What each launch, operator or scope cost is what it cost on average. Costs without a number of calls go by time.

    Args:
        meta: `Profile.meta`.
        share: Of all launches those in the part, which has as large a share of operators, scopes and other calls.
        span_ns: How long the part took.
        busy_ns: How long the GPU worked in it.
    """
    run = Run(meta)
    of_work = _of_work(run)
    work_ns = of_work.count("work_ns") or run.duration_ns or 0
    if not of_work or not work_ns:
        return None
    by_call = {f"{name}_{what}" for name in (*_DISPLACING, _GPU_PART) for what in ("ns", "calls")}
    part = {
        name: round(value * (share if name in by_call else min(span_ns / work_ns, 1.0)))
        for name in of_work
        if (value := of_work.count(name))
    }
    return _overhead(run, Facts({**part, "work_ns": span_ns, "gpu_fed_ns": round(busy_ns)}))


def _of_work(run: Run) -> Facts:
    """What the recorder did while the program was at work: samples of the host are taken all the time."""
    table = run.overhead
    work_ns = table.count("work_ns")
    if not work_ns or not run.duration_ns:
        return table
    share = min(work_ns / run.duration_ns, 1.0)
    samples = {name: round(table.count(name) * share) for name in ("samples_ns", "samples_calls")}
    return Facts({**table.values(), **samples})


def _overhead(run: Run, table: Facts) -> Overhead | None:
    work_ns = (table.count("work_ns") or run.duration_ns or 0) if table else 0
    if work_ns < _LEAST_WORK_NS:
        return None
    host = [part for name, text in _HOST_PARTS.items() if (part := _part(table, name, text)) is not None]
    gpu = _part(table, _GPU_PART, "kernel records on the GPU")
    host_ns = sum(part.cost_ns for part in host)
    exposed = 1.0
    if gpu is not None and host_ns:
        waits_for_host_ns = max(work_ns - table.count("gpu_fed_ns"), 0)
        exposed = min(waits_for_host_ns / host_ns, 1.0)
    added_ns = exposed * host_ns + (1 - exposed) * (gpu.cost_ns if gpu else 0)
    parts = sorted((*host, *([gpu] if gpu else ())), key=lambda part: -part.cost_ns)
    ran_ns = work_ns - _without_core_ns(table, work_ns)
    # Threads whose costs add up may have paid them side by side.
    known_ns = min(added_ns, work_ns)
    added_ns = min(added_ns, _NEVER_ALL * ran_ns)
    displacing_ns = exposed * sum(table.count(f"{name}_ns") for name in _DISPLACING)
    displaces = displacing_ns >= _LEAST_DISPLACED * (ran_ns - added_ns)
    slowdown = added_ns / (ran_ns - added_ns)
    return Overhead(slowdown, known_ns, work_ns, tuple(parts), _unknown(run, displaces), _is_estimated(run, table))


def _without_core_ns(table: Facts, work_ns: int) -> float:
    """Of the work the time in which the main thread was ready and had no core.

    Costs are times of threads that had one. Where they are all of the program's time, waiting makes what was added
    longer by as much as the rest. Beside a GPU the thread may have been ready while the GPU worked.
    """
    return 0.0 if table.count("gpu_fed_ns") else min(table.count("work_ready_ns"), _NEVER_ALL * work_ns)


def _part(table: Facts, name: str, text: str) -> OverheadPart | None:
    cost_ns = table.count(f"{name}_ns")
    return OverheadPart(text, cost_ns, table.count(f"{name}_calls") or None) if cost_ns else None


def _is_estimated(run: Run, table: Facts) -> bool:
    is_calibrated = table.count("operators_ns") > 0 and not run.overhead.count("uncalibrated_operators")
    return is_calibrated or table.count("records_ns") > 0 or table.count(f"{_GPU_PART}_ns") > 0


def _unknown(run: Run, displaces: bool) -> tuple[str, ...]:
    found = {
        _DISPLACED: displaces,
        "PyTorch's part of operators": run.overhead.count("uncalibrated_operators") > 0,
        "instruction samples": run.was_sampled,
    }
    return tuple(name for name, is_there in found.items() if is_there)
