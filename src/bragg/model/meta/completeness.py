"""Whether a profile holds all that was measured, and if not, what it lacks: the one place that decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bragg.model.meta.run import Run


class _Counter(NamedTuple):
    """Numbers of META that add up to one loss: `(table, name)` of each, what they count, and what is wrong with it.

    The reason is known where the error of a kernel ended the program.
    """

    facts: tuple[tuple[str, str], ...]
    noun: str
    what: str
    if_kernel_failed: str = ""


# What is in no sum.
_MISSING = (
    _Counter((("statistics", "dropped_events"), ("cuda", "dropped_records")), "record", "dropped"),
    _Counter((("statistics", "missing_records"),), "GPU record", "had not come when the recording ended"),
    _Counter(
        (("statistics", "bad_timestamps"),), "record", "without usable timestamps", "a kernel that failed has none"
    ),
    _Counter((("statistics", "dropped_slices"),), "slice", "of the timeline dropped, for which the disk was too slow"),
    _Counter((("cuda", "unread_bytes"),), "byte", "of device records of an unknown kind"),
    _Counter((("capture", "damaged_chunks"),), "damaged chunk", "of the capture"),
    _Counter((("capture", "slices_without_clock"),), "slice", "of a device's clock that was never read"),
    _Counter((("lost", "slices"),), "slice", "of the timeline lost to damage of the file"),
)
# What is in the sums, but not where it belongs.
_COARSE = (
    _Counter((("statistics", "unattributed_records"),), "record", "without a call path"),
    _Counter(
        (("statistics", "interleaved_scopes"),), "scope", "left before a scope inside: do coroutines share a context?"
    ),
    _Counter((("statistics", "cut_native_paths"),), "launch path", "without some of the native functions"),
    _Counter((("statistics", "refused_nodes"),), "call path", "beyond the limit of the tree"),
    _Counter((("statistics", "too_deep"),), "call path", "cut for its depth"),
    _Counter((("statistics", "other_names"),), "call", "beyond the limit of names, shown as <other names>"),
    _Counter((("statistics", "forgotten_copies"),), "copy call", "that may have waited and are not in sync_time"),
    _Counter((("statistics", "refused_kernel_configs"),), "launch configuration", "beyond the limit"),
)


@dataclass(frozen=True)
class Loss:
    """Something that is missing.

    Attributes:
        what: In a few words; may hold text of the file.
        why: The reason, or empty.
    """

    what: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.why})" if self.why else self.what


@dataclass(frozen=True)
class Completeness:
    """What the sums of a profile lack.

    Attributes:
        missing: What is in no sum.
        coarse: What is in the sums, but not where it belongs.
        is_known: Whether the recorder reports its losses.
        is_running: Whether the run continues, so that what was recorded so far is all there can be.
    """

    missing: tuple[Loss, ...]
    coarse: tuple[Loss, ...]
    is_known: bool
    is_running: bool = False

    @property
    def word(self) -> str:
        """`complete`, or what is missing and that sums are too low; `unknown` where the recorder does not tell.

        A run that continues is `running`, never `complete`.
        """
        if not self.missing:
            return "running" if self.is_running else "complete" if self.is_known else "unknown"
        n_others = len(self.missing) - 1
        more = f" and {n_others} more {'loss' if n_others == 1 else 'losses'}" if n_others else ""
        running = "running, " if self.is_running else ""
        return f"{running}incomplete: {self.missing[0].what}{more}, sums are too low"

    def warnings(self) -> Iterator[str]:
        """One line for each loss."""
        yield from (f"{loss}, so sums are too low" for loss in self.missing)
        yield from map(str, self.coarse)


def completeness_of(meta: Mapping[str, Any]) -> Completeness:
    """The completeness of a recording, or of all that were merged.

    Args:
        meta: `Profile.meta`.
    """
    recordings = Run(meta).recordings
    unfinished = dict.fromkeys(loss for each in recordings for loss in _unfinished(each))
    return Completeness(
        missing=(*unfinished, *_counted(recordings, _MISSING)),
        coarse=tuple(_counted(recordings, _COARSE)),
        is_known=all(each.tells_losses for each in recordings),
        is_running=any(each.is_running for each in recordings),
    )


def _unfinished(run: Run) -> Iterator[Loss]:
    if run.cuda.failure:
        yield Loss("GPU work was not recorded", run.cuda.failure)
    if missed_ns := run.cuda.missed_start_ns:
        why = "another tool owns CUDA_INJECTION64_PATH"
        yield Loss(f"GPU work of up to the first {missed_ns / 1e6:,.0f} ms is missing", why)
    if run.write_error:
        yield Loss("the capture could not be written to its end", run.write_error)
    elif run.is_cut_short:
        yield Loss("what came after the last flush is missing", "the program was killed, or was still running")


def _counted(recordings: Iterable[Run], counters: Iterable[_Counter]) -> Iterator[Loss]:
    for counter in counters:
        losing = [run for run in recordings if any(run.lost(table, name) for table, name in counter.facts)]
        count = sum(run.lost(table, name) for run in losing for table, name in counter.facts)
        if count:
            why = counter.if_kernel_failed if all(run.kernel_error for run in losing) else ""
            yield Loss(f"{count:,} {counter.noun}{'' if count == 1 else 's'} {counter.what}", why)
