"""What recording small steps of JAX costs, and what of it are operators: recordings by turns, in one process.

`grad` is the gradient of 8 layers of 128x128, on a GPU some tens of kernels, most of them in command buffers; `small`
is one kernel. Each contender stands beside a recording with `framework="off"`. Steps are compiled anew for each burst:
whole graphs can be recorded of those alone that are made meanwhile. Times are wall time until the device is done, and
what the calling thread computed until then.

python benchmarks/jax_steps.py --backend cuda --out results.json     (a GPU and JAX)
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness

if TYPE_CHECKING:
    from bragg.model import Profile
    from bragg.record.config import Framework
    from cupti_floor import CuptiFloor

WARM_UP_CALLS = 50
CALLS, TIMES = 100, 5  # of each burst; the median of the times counts
MIN_ROUNDS = 3
BASELINE = "off"

Step = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One process.

    Attributes:
        context: Of its recordings.
        graphs: Likewise.
        nvtx: XLA finds a library that takes its ranges.
        xla_flags: Said to XLA.
        contenders: Beside a recording with `framework="off"`.
    """

    context: str = "python"
    graphs: str = "node"
    nvtx: bool = True
    xla_flags: str = ""
    contenders: tuple[str, ...] = ("jax", "not recorded")


CASES = {
    "nodes of graphs": Case(),
    "whole graphs": Case(graphs="graph"),
    "nodes, shadow context": Case(context="shadow"),
    "nodes, nobody takes ranges": Case(nvtx=False),
    "no command buffers": Case(xla_flags="--xla_gpu_enable_command_buffer="),
    "nodes, beside less": Case(contenders=("not recorded", "off, ranges thrown away", "kernel records of CUPTI")),
}


@dataclass(frozen=True)
class Burst:
    """Times of one call: on the wall, and what the thread that calls computed."""

    wall_s: float
    thread_s: float


def layers(jax: Any) -> Step:
    """The gradient of a small model."""
    weights, x = [jax.numpy.full((128, 128), 1e-2)] * 8, jax.numpy.ones((64, 128))

    def loss(weights: list[Any], x: Any) -> Any:
        for number, weight in enumerate(weights):
            with jax.named_scope(f"block{number}"):
                x = jax.numpy.tanh(x @ weight)
        return (x * x).mean()

    return partial(jax.jit(jax.value_and_grad(loss)), weights, x)


def doubling(jax: Any) -> Step:
    """One kernel."""
    return partial(jax.jit(lambda v: v * 2), jax.numpy.ones((64, 128)))


STEPS: dict[str, Callable[[Any], Step]] = {"grad": layers, "small": doubling}


def measure(jax: Any, step: Step) -> Burst:
    """The medians of some times of many calls each."""

    def timed(calls: int) -> Burst:
        began_s, computed_s = time.perf_counter(), time.thread_time()
        result = None
        for _ in range(calls):
            result = step()
        jax.block_until_ready(result)
        return Burst((time.perf_counter() - began_s) / calls, (time.thread_time() - computed_s) / calls)

    timed(WARM_UP_CALLS)
    times = [timed(CALLS) for _ in range(TIMES)]
    return Burst(statistics.median(each.wall_s for each in times), statistics.median(each.thread_s for each in times))


class Contenders:
    """What goes on around a burst, by name.

    Args:
        case: How to record, and what is compared.
        backend: What measures.
        directory: For captures and what is compiled.
    """

    def __init__(self, case: Case, backend: str, directory: Path) -> None:
        self._options: dict[str, Any] = {"backend": backend, "context": case.context, "graphs": case.graphs}
        self._directory = directory
        self.profile: Profile | None = None
        all_of_them: dict[str, Callable[[], AbstractContextManager[None]]] = {
            BASELINE: partial(self.recorded, "off"),
            "jax": partial(self.recorded, "jax"),
            "not recorded": nullcontext,
        }
        if backend == "cuda":
            all_of_them |= {"off, ranges thrown away": self.without_ranges, "kernel records of CUPTI": self.floor}
        self.by_name = {name: all_of_them[name] for name in all_of_them if name in (BASELINE, *case.contenders)}

    @contextmanager
    def recorded(self, framework: Framework) -> Iterator[None]:
        """A session, whose profile is kept."""
        import bragg

        output = str(self._directory / "burst.bragg")
        session = bragg.start(output, framework=framework, sample_interval_us=0, **self._options)
        try:
            with bragg.scope("burst"):
                yield
        finally:
            self.profile = session.stop(save=False)

    @contextmanager
    def without_ranges(self) -> Iterator[None]:
        """A session to which ranges that XLA pushes mean nothing."""
        from bragg.core import core

        core.record_nvtx(False)
        try:
            with self.recorded("off"):
                yield
        finally:
            core.record_nvtx(True)

    @contextmanager
    def floor(self) -> Iterator[None]:
        """Records that nobody reads."""
        self._floor.attach()
        try:
            yield
        finally:
            self._floor.detach()

    @cached_property
    def _floor(self) -> CuptiFloor:
        from cupti_floor import CuptiFloor

        return CuptiFloor(self._directory)


def cost(case: Case, backend: str, budget_s: float, directory: Path) -> dict[str, Any]:
    """All contenders and steps by turns; JAX is imported while a recording has claimed its injection variables."""
    if not case.nvtx:
        os.environ["BRAGG_NVTX"] = "0"
    if case.xla_flags:
        os.environ["XLA_FLAGS"] = case.xla_flags
    contenders = Contenders(case, backend, directory)
    with contenders.recorded("off"):
        jax: Any = importlib.import_module("jax")
        for make in STEPS.values():
            jax.block_until_ready(make(jax)())

    bursts: dict[tuple[str, str], list[Burst]] = {}
    events: dict[tuple[str, str], dict[str, float]] = {}
    deadline = time.monotonic() + budget_s
    while (rounds := len(bursts.get(("grad", BASELINE), ()))) < MIN_ROUNDS or time.monotonic() < deadline:
        for name in list(contenders.by_name)[:: -1 if rounds % 2 else 1]:
            for step, make in STEPS.items():
                jax.clear_caches()
                gc.collect()
                contenders.profile = None
                with contenders.by_name[name]():
                    bursts.setdefault((step, name), []).append(measure(jax, make(jax)))
                events[step, name] = events_per_call(contenders.profile)
    return {"rows": [{**row(bursts, step, name), **events[step, name]} for step, name in sorted(bursts)]}


def events_per_call(profile: Profile | None) -> dict[str, float]:
    """Records of the device, and entries of the host that a profile shows, of a call; none of what is not recorded."""
    calls = WARM_UP_CALLS + TIMES * CALLS
    return {
        column: round(float(profile.own(metric).sum()) / calls, 1)
        for column, metric in (("records", "gpu_count"), ("entries", "host_count"))
        if profile is not None and metric in profile.metrics
    }


def row(bursts: dict[tuple[str, str], list[Burst]], step: str, name: str) -> dict[str, Any]:
    """A contender beside the baseline."""
    pairs = list(zip(bursts[step, BASELINE], bursts[step, name], strict=True))
    wall = harness.Ratio.of([(without.wall_s, burst.wall_s) for without, burst in pairs])
    thread = harness.Ratio.of([(without.thread_s, burst.thread_s) for without, burst in pairs])
    return {
        "step": step,
        "contender": name,
        "rounds": wall.rounds,
        "off_us": round(wall.without_s * 1e6, 2),
        "us": round(wall.with_s * 1e6, 2),
        "median": round(wall.median, 4),
        "low": round(wall.low, 4),
        "high": round(wall.high, 4),
        "thread_off_us": round(thread.without_s * 1e6, 2),
        "thread_us": round(thread.with_s * 1e6, 2),
        "thread_median": round(thread.median, 4),
    }


def main() -> None:
    """Run one case (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--backend", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--budget", type=float, default=20, help="time for the rounds of one case, s")
    parser.add_argument("--case", choices=CASES, action="append", help="not all")
    parser.add_argument("--child", action="store_true")
    arguments = parser.parse_args()
    backend = arguments.backend
    if backend == "auto":
        backend = "cuda" if harness.gpu_is_here() else "cpu"
    if arguments.child:
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps(cost(CASES[arguments.case[0]], backend, arguments.budget, Path(directory))))
        return
    # Programs are compiled once for all bursts: XLA may tune them otherwise each time.
    with tempfile.TemporaryDirectory() as directory:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", directory)
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        fixed = ["--backend", backend, "--budget", str(arguments.budget), "--child", "--case"]
        rows = []
        for case in arguments.case or CASES:
            found = harness.in_child([__file__, *fixed, case], timeout_s=arguments.budget + 200)
            rows += [{"case": case, **each} for each in found.get("rows", [found])]
    harness.report("jax_steps", rows, arguments.out)


if __name__ == "__main__":
    main()
