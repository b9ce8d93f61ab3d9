"""How long a function keeps the GPU busy: `triton.testing.do_bench`, with the GPU's own times of kernels.

CUDA events around a call measure the gaps between its launches too, which for small kernels are most of the time. Here
a run takes as long as at least one of its kernels, copies or sets ran.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

import bragg
from bragg.core import core
from bragg.errors import BackendUnavailable, BraggError, NothingRecorded, RecordingFailed, UsageError
from bragg.garbage import no_collection
from bragg.model import FrameKind, Profile, TrackKind
from bragg.model.meta.completeness import completeness_of
from bragg.model.meta.run import Run
from bragg.model.table import Int64Array
from bragg.record.inside.session import Session

__all__ = ["ReturnMode", "do_bench", "do_bench_cudagraph"]

ReturnMode = Literal["min", "max", "mean", "median", "all"]

_ESTIMATING_RUNS = 5
_REPLAYS = 10
_SHORTEST_RUN_MS = 1e-3  # Less than any launch takes: the number of runs stays finite.
_FLUSHED_BYTES = 256 << 20  # Twice the largest L2 cache (B200: 126 MB); the size that Triton uses.
_RUN = "bragg.bench "


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: ReturnMode = "mean",
    *,
    flush_l2: bool | None = None,
) -> float | list[float]:
    """Time that a function keeps the GPU busy, ms.

    Arguments are those of `triton.testing.do_bench`. The L2 cache is flushed before each run, which is not counted.

    Args:
        fn: The function to measure. It is also called several times for warm-up.
        warmup: How long it runs before it is measured, ms.
        rep: How long it is measured, ms.
        grad_to_none: Tensors whose gradient is dropped before each run.
        quantiles: Return these quantiles (0 to 1) instead of `return_mode`; a single one is returned as a number.
        return_mode: How the times of all runs are combined.
        flush_l2: Flush the L2 cache before each run; None: if PyTorch is loaded, else warn.

    Raises:
        BackendUnavailable: There is no GPU that can be recorded.
        NothingRecorded: The function does nothing on the GPU.
        RecordingFailed: Records were lost, so times would be too short.
        UsageError: An argument is out of its range.
    """
    summarize = _summary(quantiles, return_mode)
    with _recording() as recorded:
        prepare = _preparation(grad_to_none, flush_l2)
        n_warmup, n_runs = _run_counts(fn, prepare, warmup, rep)
        for _ in range(n_warmup):
            prepare()
            fn()
        for run in range(n_runs):
            prepare()
            with core.Scope(f"{_RUN}{run}"):
                fn()
        _synchronize()
    return summarize(_busy_ms(recorded[0], n_runs))


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: ReturnMode = "mean",
) -> float | list[float]:
    """Time of a function that is replayed as a CUDA graph, so that the host cannot slow it down, ms.

    The graph holds as many calls as take `rep` ms and is replayed ten times; each replay gives one time, that of its
    kernels divided by its calls. The L2 cache is not flushed, as in `triton.testing.do_bench_cudagraph`.

    Args:
        fn: The function to measure; it must be capturable.
        rep: GPU time of one replay, ms.
        grad_to_none: This and what follows: as for `do_bench`.
        quantiles: Of `do_bench`.
        return_mode: Of `do_bench`.

    Raises:
        BackendUnavailable: There is no GPU that can be recorded, or no PyTorch, which captures the graph.
        NothingRecorded: The function does nothing on the GPU.
        RecordingFailed: Records were lost, so times would be too short.
        UsageError: An argument is out of its range.
    """
    summarize = _summary(quantiles, return_mode)
    torch = sys.modules.get("torch")
    if torch is None:
        raise BackendUnavailable("do_bench_cudagraph needs PyTorch", hint="Import torch first, or use bragg.do_bench")
    with _recording() as recorded, torch.cuda.stream(torch.cuda.Stream()):
        drop_gradients = _preparation(grad_to_none, flush_l2=False)
        (n_calls,) = _run_counts(fn, drop_gradients, rep)
        graph = torch.cuda.CUDAGraph()
        # The end of a compiled kernel unloads its module, which breaks the capture of a graph.
        with no_collection(), torch.cuda.graph(graph):
            for _ in range(n_calls):
                drop_gradients()
                fn()
        _synchronize()
        for replay in range(_REPLAYS):
            with core.Scope(f"{_RUN}{replay}"):
                graph.replay()
        _synchronize()
    return summarize([time_ms / n_calls for time_ms in _busy_ms(recorded[0], _REPLAYS)])


@contextmanager
def _recording() -> Iterator[list[Profile]]:
    """Record the body; the list that it gets holds the profile once it has ended."""
    recorded: list[Profile] = []
    with tempfile.TemporaryDirectory(prefix="bragg-bench-") as directory:
        session = _start(f"{directory.replace('%', '%%')}/bench.bragg")
        try:
            yield recorded
        except BaseException:
            with suppress(BraggError):
                session.stop()
            raise
        session.stop()
        # Of a rank the file has a longer name.
        recorded += [bragg.load(path) for path in Path(directory).glob("*.bragg")]


def _start(name: str) -> Session:
    try:
        return bragg.start(name, backend="cuda", context="shadow", data="trace")
    except BackendUnavailable as error:
        raise BackendUnavailable(
            f"kernels can only be measured on an NVIDIA GPU: {error.message}",
            tried=error.tried,
            hint="Run `bragg doctor`; what runs on the CPU alone can be measured with the module timeit",
        ) from error


def _preparation(grad_to_none: Iterable[Any] | None, flush_l2: bool | None) -> Callable[[], None]:
    """What happens before each run."""
    tensors = list(grad_to_none or ())
    buffer = _flush_buffer(flush_l2)

    def prepare() -> None:
        for tensor in tensors:
            tensor.grad = None
        if buffer is not None:
            buffer.zero_()

    return prepare


def _flush_buffer(flush_l2: bool | None) -> Any:
    """A tensor whose writing empties the L2 cache; None when it is to stay as it is."""
    if flush_l2 is False:
        return None
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.empty(_FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    if flush_l2:
        raise UsageError("flushing the L2 cache needs PyTorch, which is not loaded", hint="Import torch first")
    warnings.warn(
        "PyTorch is not loaded, so the L2 cache is not flushed between runs. Pass flush_l2=False if you want that",
        RuntimeWarning,
        stacklevel=4,
    )
    return None


def _run_counts(fn: Callable[[], Any], prepare: Callable[[], None], *budgets_ms: float) -> list[int]:
    """How many runs take each of some times, at least one; the function has run several times then."""
    fn()  # Compiles and tunes.
    _synchronize()
    start_s = time.perf_counter()
    for _ in range(_ESTIMATING_RUNS):
        prepare()
        fn()
    _synchronize()
    run_ms = max((time.perf_counter() - start_s) * 1e3 / _ESTIMATING_RUNS, _SHORTEST_RUN_MS)
    return [max(1, int(budget_ms / run_ms)) for budget_ms in budgets_ms]


def _synchronize() -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.cuda.synchronize()
    else:
        core.flush_device_records()


def _busy_ms(profile: Profile, n_runs: int) -> list[float]:
    """Time of each run in which at least one of its kernels, copies or sets ran, on any device."""
    _require_all_records(profile.meta)
    run = _run_of_nodes(profile)[profile.slices.node]
    on_device = profile.tracks.kind[profile.slices.track] == TrackKind.GPU_STREAM
    rows = np.flatnonzero(on_device & (run >= 0))
    if not len(rows):
        raise NothingRecorded("the function did nothing on the GPU", hint="Is it asynchronous in another process?")
    slices = profile.slices.take(rows)
    busy_ns = _union_ns(run[rows], slices.start_ns, slices.duration_ns, n_runs)
    return [float(time_ns) / 1e6 for time_ns in busy_ns]


def _run_of_nodes(profile: Profile) -> Int64Array:
    """The run that each node is part of: [n_nodes]; -1 for none."""
    tree = profile.tree
    names = [name.removeprefix(_RUN) if name.startswith(_RUN) else "" for name in tree.frames.name]
    is_scope = tree.frames.kind == FrameKind.SCOPE
    run_of_frame = np.array([int(name) if name.isdecimal() else -1 for name in names], np.int64)
    run = np.where(is_scope, run_of_frame, -1)[tree.frame]
    for level in tree.levels[1:]:
        run[level] = np.where(run[level] >= 0, run[level], run[tree.parent[level]])
    return run


def _union_ns(run: Int64Array, start_ns: Int64Array, duration_ns: Int64Array, n_runs: int) -> Int64Array:
    """Length of the union of the intervals of each run.

    Args:
        run: Of each interval.
        start_ns: When it starts.
        duration_ns: How long it is.
        n_runs: Length of the result.
    """
    order = np.lexsort((start_ns, run))
    run, start = run[order], start_ns[order] - start_ns.min()
    end = start + duration_ns[order]
    # Each run gets a span of time of its own, so that one pass over all intervals does.
    shift = run * (int(end.max()) + 1)
    covered = np.concatenate([[0], np.maximum.accumulate(end + shift)[:-1]])
    busy = np.maximum(end + shift - np.maximum(start + shift, covered), 0)
    times = np.zeros(n_runs, np.int64)
    np.add.at(times, run, busy)
    return times


def _require_all_records(meta: Mapping[str, Any]) -> None:
    failure = Run(meta).cuda.failure
    if failure:  # CUDA came up after the recording had started.
        raise BackendUnavailable(f"the GPU cannot be recorded: {failure}", hint="Run `bragg doctor`")
    if missing := completeness_of(meta).missing:
        raise RecordingFailed(f"records are missing: {missing[0]}", hint="Measure fewer runs: lower rep")


def _summary(quantiles: Sequence[float] | None, return_mode: str) -> Callable[[list[float]], float | list[float]]:
    """What to make of the times of all runs.

    Raises:
        UsageError: A quantile or the mode is out of its range.
    """
    if quantiles is not None:
        if not quantiles or not all(0 <= quantile <= 1 for quantile in quantiles):
            raise UsageError(f"quantiles must be numbers from 0 to 1, not {quantiles!r}")
        wanted = list(quantiles)
        return lambda times: _first_if_single([float(value) for value in np.quantile(times, wanted)])
    if return_mode == "all":
        return lambda times: times
    functions: dict[str, Callable[[list[float]], float]] = {
        "min": min,
        "max": max,
        "mean": statistics.fmean,
        "median": statistics.median,
    }
    if return_mode not in functions:
        raise UsageError(
            f"unknown return mode {return_mode!r}", hint=f"Choose one of: {', '.join(get_args(ReturnMode))}"
        )
    return functions[return_mode]


def _first_if_single(values: list[float]) -> float | list[float]:
    return values[0] if len(values) == 1 else values
