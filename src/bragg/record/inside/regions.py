"""Regions of training programs: how long each call of them took, and each training step.

The times are those of the thread that trains. They are added up here, since a step is not part of a call path: it lies
between two ends of an optimizer's step.
"""

from __future__ import annotations

import os
import threading
import weakref
from time import perf_counter_ns

from bragg.core import core
from bragg.duration_buckets import bucket_of
from bragg.record.inside.first_calls import FirstCalls
from bragg.record.inside.region_spans import RegionSpans
from bragg.record.region_names import ALL, DECODING_STEP, STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    _Result = TypeVar("_Result")
    Reading = dict[str, dict[str, Any]]


class Times:
    """Calls and times of a region, or of steps.

    Attributes:
        count: Calls that ended without an exception.
        total_ns: Of all calls, without regions inside them.
        in_steps_ns: What of it lies in steps that are complete.
        buckets: How many of the counted calls took how long.
        first_calls: When the first of them ended.
    """

    def __init__(self) -> None:
        self.count = self.total_ns = self.in_steps_ns = 0
        self.buckets: dict[int, int] = {}
        self.first_calls = FirstCalls()

    def add(self, duration_ns: int, *, counts: bool) -> None:
        """Add a call, or with `counts` unset time alone."""
        self.total_ns += duration_ns
        if counts:
            bucket = bucket_of(duration_ns)
            self.count += 1
            self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def to_json(self) -> dict[str, Any]:
        """The object that the file stores."""
        numbers = {"count": self.count, "total_ns": self.total_ns, "in_steps_ns": self.in_steps_ns}
        buckets = {str(bucket): count for bucket, count in self.buckets.items()}
        return {**numbers, "buckets": buckets, **self.first_calls.to_json()}


class _Open:
    """A region that is open: its name, when it began by both clocks, and for how long others were open inside."""

    __slots__ = ("began_at_ns", "inside_ns", "name", "started_ns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.inside_ns = 0
        self.began_at_ns = core.now_ns()
        self.started_ns = perf_counter_ns()


class _State:
    """A state of the call path, to be entered like a scope."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        core.enter_state(self._name)

    def __exit__(self, *_: object) -> None:
        core.exit_state()


class _Thread(threading.local):
    """Regions that are open on a thread, the innermost last; whether a model is running or being differentiated."""

    def __init__(self) -> None:
        self.open: list[_Open] = []
        self.is_in_model = False


class Regions:
    """The regions of this process, by the calls that hooks pass through them.

    Attributes:
        thread: What is open on the calling thread.
        spans: When they ran, for timelines.
    """

    def __init__(self) -> None:
        self.thread = _Thread()
        self.spans = RegionSpans((*ALL, DECODING_STEP))
        self._scopes: dict[str, core.Scope | _State] = {name: core.Scope(f"torch: {name}") for name in ALL[1:]}
        self._times = {name: Times() for name in (*ALL, DECODING_STEP)}
        self._free_lock()
        os.register_at_fork(after_in_child=self._free_lock)
        self._began = dict[str, tuple[int, int]]()  # steps, by perf_counter and by CLOCK_REALTIME, as timelines are
        self._leader: Callable[[], object] = lambda: None

    def _free_lock(self) -> None:
        self._lock = threading.Lock()  # not the one that a thread held which the child does not have

    def run(
        self,
        name: str,
        function: Callable[..., _Result],
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
        *,
        counts: bool = True,
    ) -> _Result:
        """Call a function in a region, unless the thread is in that region already.

        Args:
            name: Name of the region.
            function: The function to call.
            arguments: Its positional arguments.
            options: Its keyword arguments.
            counts: Whether it is a call of the region, or something beside that takes time.
        """
        thread = self.thread
        if any(entry.name == name for entry in thread.open):
            return function(*arguments, **options)
        was_in_model, thread.is_in_model = thread.is_in_model, thread.is_in_model or name in ("forward", "backward")
        entry = _Open(name)
        thread.open.append(entry)
        self._began.setdefault(STEP, (entry.started_ns, entry.began_at_ns))
        ended = False
        try:
            with self._scopes[name]:
                result = function(*arguments, **options)
            ended = True
            return result
        finally:
            thread.open.pop()
            thread.is_in_model = was_in_model
            self._leave(entry, counts=counts and ended)

    def show_backward_as_state(self, wanted: bool) -> None:
        """Whether the backward region has no time in the call path: where operators are recorded, theirs is all of it.

        A scope would count it once more, since operators of a backward pass stand below the forward ones.
        """
        name = "torch: backward"
        self._scopes["backward"] = _State(name) if wanted else core.Scope(name)

    def begin(self) -> None:
        """Regions are seen from now on: the first step begins with the first of them."""
        self._began.pop(STEP, None)
        self._leader = lambda: None

    def end_step(self, optimizer: object) -> None:
        """An optimizer has made a step. Where several take turns, the one that was first ends the training steps."""
        leader = self._leader()
        if leader is None:
            self._leader = weakref.ref(optimizer)
        elif leader is not optimizer:
            return
        with self._lock:
            self._complete(STEP)
            for times in self._times.values():
                times.in_steps_ns = times.total_ns

    def begin_decoding(self) -> None:
        """Decoding steps are seen from now on; the first one tells when the second begins."""
        self._began.pop(DECODING_STEP, None)

    def end_decoding_step(self) -> None:
        """Each sequence has got a token."""
        with self._lock:
            self._complete(DECODING_STEP)

    def _complete(self, name: str) -> None:
        """A step ends, and the next one begins; the caller locks."""
        now_ns, at_ns = perf_counter_ns(), core.now_ns()
        if name in self._began:
            began_ns, began_at_ns = self._began[name]
            self._times[name].add(now_ns - began_ns, counts=True)
            self._times[name].first_calls.add(began_at_ns, at_ns)
            self.spans.add(name, began_at_ns, at_ns)
        self._began[name] = now_ns, at_ns

    def reading(self) -> Reading:
        """All times until now, as JSON."""
        with self._lock:
            return {name: times.to_json() for name, times in self._times.items() if times.total_ns}

    def _leave(self, entry: _Open, *, counts: bool) -> None:
        elapsed_ns, ended_at_ns = perf_counter_ns() - entry.started_ns, core.now_ns()
        if self.thread.open:
            self.thread.open[-1].inside_ns += elapsed_ns
        with self._lock:
            self._times[entry.name].add(elapsed_ns - entry.inside_ns, counts=counts)
            if counts:
                self._times[entry.name].first_calls.add(entry.began_at_ns, ended_at_ns)
            self.spans.add(entry.name, entry.began_at_ns, ended_at_ns)


def since(before: Reading, after: Reading) -> Reading:
    """The difference between two readings."""
    came = {name: _minus(times, before.get(name, {})) for name, times in after.items()}
    return {name: times for name, times in came.items() if times["total_ns"]}


def _minus(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    earlier = before.get("buckets", {})
    counts = {bucket: count - earlier.get(bucket, 0) for bucket, count in after["buckets"].items()}
    numbers = {key: value - before.get(key, 0) for key, value in after.items() if isinstance(value, int)}
    # The first calls are those of the process: where some came before, they tell nothing of what came later.
    first = {} if "first_calls" in before else {key: after[key] for key in ("first_calls",) if key in after}
    return {**numbers, "buckets": {bucket: count for bucket, count in counts.items() if count}, **first}


REGIONS = Regions()
