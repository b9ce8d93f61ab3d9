"""A session of checks: every launch inside of it is executed and watched."""

from __future__ import annotations

from bdb import BdbQuit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from bragg.debug.checkers import Checker, LaunchFindings
from bragg.debug.faults import KernelFault, StaticAssertion, Unsupported
from bragg.debug.findings import KernelFinding
from bragg.debug.flow.jitted import is_interpreted
from bragg.debug.host.compiler import types_question
from bragg.debug.host.launch import Launch, execute
from bragg.debug.host.launch_hooks import run_between_hooks
from bragg.debug.host.machine_target import machine_target
from bragg.debug.host.patience import LaunchTooLong, Patience, Watched
from bragg.debug.host.tuned import is_measured
from bragg.debug.memory.emptiness import marked_allocations
from bragg.debug.memory.lifetimes import remembered_addresses
from bragg.debug.memory.unread import unread_columns
from bragg.debug.outbox import Outbox
from bragg.debug.pallas.interception import checked_pallas_calls
from bragg.debug.report import Report
from bragg.debug.state import Listeners
from bragg.debug.switch import redirected
from bragg.debug.targets import target_named
from bragg.debug.verdicts import Verdict, judged
from bragg.model import Severity
from bragg.registry import CHECKERS


def chosen_checkers(only: Sequence[str] = (), add: Sequence[str] = (), without: Sequence[str] = ()) -> list[Checker]:
    """The checkers to use.

    Args:
        only: These alone; empty: those that are on by default.
        add: These too.
        without: Not these.

    Raises:
        UsageError: A name is not that of a checker.
    """
    for name in (*add, *without):
        CHECKERS[name]
    chosen: list[Checker] = [CHECKERS[name] for name in only] if only else []
    if not only:
        chosen = [checker for checker in CHECKERS.values() if checker.is_default or checker.name in add]
    return [checker for checker in chosen if checker.name not in without]


class CheckedSession:
    """Watches launches and collects what the checkers find.

    Attributes:
        report: The findings.
        outbox: Where they go as well, in a process that the checked program has started.
        only: Program to execute instead of the whole grid.
        patience: How long launches may take; None: as long as they do.

    Args:
        checkers: Who watches.
        only: Program to execute instead of the whole grid.
        tell: Called with each new finding at once, while the kernel is at its line.
        patience: How long launches may take; None: as long as they do.
        target: The GPU that kernels are for: `sm_90`, `gfx942` and the like, or `any`; empty: that of the machine, else
            `sm_90`.

    Raises:
        UsageError: The target is unknown.
    """

    def __init__(
        self,
        checkers: Sequence[Checker],
        only: tuple[int, int, int] | None = None,
        tell: Callable[[KernelFinding], None] | None = None,
        patience: Patience | None = None,
        target: str = "",
    ) -> None:
        self.report = Report(tell)
        self.outbox: Outbox | None = None
        self.only = only
        self.patience = patience
        self.target = target_named(target) if target else machine_target()
        self._checkers = checkers
        self._names = frozenset(checker.name for checker in checkers)
        self._watched: Watched | None = None
        self._listeners = Listeners()

    @property
    def checker_names(self) -> list[str]:
        """Of those that `bragg check --list` knows."""
        return [checker.name for checker in self._checkers if checker.name in dict.fromkeys(CHECKERS)]

    def run(self, kernel: Any, grid: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Execute a launch; a fault of the kernel is a finding too, and raised."""
        additions, launches = self.report.additions, self.report.launches
        try:
            given = (kernel, grid, arguments, named, self._observe, self.only, self._forget)
            launch = execute(*given, run_between_hooks)
            if self._listeners.types is not None:
                self._listeners.types.finish()
            for listener in self._listeners.end:
                listener()
            has_findings = self.report.additions > additions
            self.report.verdicts.counts[judged(launch, has_findings=has_findings, checkers=self._names)] += 1
        except KernelFault as fault:
            if isinstance(fault, StaticAssertion) and is_measured():
                raise
            place: dict[str, Any] = {"kernel": fault.kernel, "file": fault.file, "line": fault.line}
            finding = KernelFinding(fault.rule, Severity.ERROR, fault.reason, fault.hint, **place)
            self.report.add(finding, (fault.kernel, fault.file, fault.line, fault.reason), (), 0)
            self.report.verdicts.counts[Verdict(fault.kernel, "finding")] += 1
            raise
        except Unsupported as error:
            self.report.refuse(f"{getattr(kernel, '__name__', 'a kernel')}: {error.message}")
            raise
        except BdbQuit:
            raise
        except (KeyboardInterrupt, LaunchTooLong):
            if self._watched is not None:
                self.report.programs -= self._watched.n_left
            raise
        except Exception as error:
            if self.report.launches > launches:
                self.report.refuse(f"the rest of {kernel.__name__}, which {type(error).__name__} ended: {error}")
            raise
        finally:
            self._listeners, self._watched = Listeners(), None  # They hold the tensors of the launch.
            if self.patience is not None and self.patience.status is not None:
                self.patience.status.end()
            if self.outbox is not None:
                self.outbox.put(self.report)

    def finish(self) -> None:
        """The program has ended: judge what only its end can tell."""
        self.report.judge()
        if self.outbox is not None:
            self.outbox.put(self.report)

    def _forget(self, launch: Launch) -> None:
        self.report.launches -= 1
        self.report.programs -= 1 if launch.only else launch.programs

    def _observe(self, launch: Launch) -> Listeners:
        self.report.launches += 1
        self.report.programs += 1 if launch.only else launch.programs
        # A program that chose Triton's interpreter means no GPU: it has all types, and blocks of any size.
        on_gpu = not is_interpreted(launch.jitted)
        together = self._listeners = Listeners(target=self.target if on_gpu else None)
        if on_gpu:
            together.types = types_question(launch, self.target)
        if self.patience is not None:
            self._watched = Watched(launch, self.patience)
            together.step = (self._watched.step,)
        watching = self._names if on_gpu else self._names - {"portability"}
        for checker in self._checkers:
            if checker.name in watching:
                together.add(checker.watch(LaunchFindings(checker.name, launch, self.report, watching)))
        together.add(unread_columns(launch, partial(self.report.verdicts.note, launch.kernel)))
        if self._watched is not None:
            self._watched.begin()
        return together


@contextmanager
def checking(session: CheckedSession) -> Iterator[Report]:
    """Send all launches to a session.

    Raises:
        TritonMissing: It is not installed.
    """
    names = frozenset(session.checker_names)
    with (
        redirected(session.run),
        marked_allocations(),
        remembered_addresses(),
        checked_pallas_calls(session.report, names),
    ):
        yield session.report
        session.finish()
