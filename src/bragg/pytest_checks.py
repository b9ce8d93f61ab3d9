"""`pytest --bragg-check`: Triton kernels of tests are executed without a GPU, and a wrong one fails its test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property

import pytest

from bragg.debug.children import with_children
from bragg.debug.findings import KernelFinding
from bragg.debug.host.target import host_without_gpu
from bragg.debug.report import Report
from bragg.debug.session import CheckedSession, checking, chosen_checkers
from bragg.debug.texts.consequences import grouped, grouped_lines
from bragg.model import Severity
from bragg.views.text.style import printable
from bragg.views.text.units import count_text

__all__ = ["TestChecker"]


@dataclass(frozen=True)
class _Checked:
    """What the launches of one test came to; it travels with the test's report from workers of pytest-xdist."""

    launches: int
    programs: int
    findings: int
    followers: int


class TestChecker:
    """Checks each test by itself.

    Args:
        add: Checkers to use beside those that are on by default.
        without: Checkers to leave out.
        target: The GPU that kernels are for; empty: that of the machine, else `sm_90`.

    Raises:
        UsageError: A name is not that of a checker, or of a target.
        TritonMissing: It is not installed.
    """

    __test__ = False  # No test, whatever its name begins with.

    def __init__(self, add: Sequence[str], without: Sequence[str], target: str) -> None:
        self._session = CheckedSession(chosen_checkers(add=add, without=without), target=target)
        self._added = frozenset(add)
        self._checked: list[_Checked] = []
        self._whole_run = ExitStack()
        self._whole_run.enter_context(host_without_gpu(self._session.target))

    def pytest_unconfigure(self) -> None:
        """PyTorch's tensors are where they were again."""
        self._whole_run.close()

    @cached_property
    def _collect(self) -> Callable[[bool], None]:
        """Adds what processes have found that tests start. Those of pytest-xdist come before it is made."""
        return self._whole_run.enter_context(with_children(self._session))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """What a module of tests launches while it is imported is executed and checked, too: findings end it."""
        if not isinstance(collector, pytest.Module):
            return (yield)
        self._session.report = Report()
        with checking(self._session):
            report = yield
        wrong = [finding for finding in self._session.report if self._fails(finding)]
        if wrong and report.passed:
            report.outcome, report.longrepr = "failed", _text(wrong)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """The launches of a test and of what is made for it are executed and checked."""
        self._collect  # noqa: B018 - from now on processes are followed
        self._session.report = Report()
        with checking(self._session):
            return (yield)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """What processes have found that outlive their test fails the whole."""
        if "_collect" not in vars(self):
            return
        self._session.report = Report()
        self._collect(True)
        told = list(self._session.report)
        if told:
            print(f"in processes that have outlived their test:\n{_text(told)}", file=sys.stderr)
        if any(map(self._fails, told)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """A test that passes fails by what was found until its end."""
        chosen_checkers(without=sorted(_left_out(item)))  # An unknown name fails the test.
        try:
            result = yield
        except BaseException:
            self._collect(False)
            item.add_report_section("call", "bragg check", _text(self._session.report.findings))
            raise
        self._collect(False)
        self._session.report.judge()
        # What ends a kernel was raised: a test that continues has expected it.
        told = [finding for finding in self._found(item) if finding.rule not in ("kernel-fault", "residency")]
        wrong = [finding for finding in told if self._fails(finding)]
        if wrong:
            pytest.fail(_text(wrong), pytrace=False)
        for finding in told:
            item.warn(pytest.PytestWarning(_text([finding])))
        return result

    def _found(self, item: pytest.Item) -> list[KernelFinding]:
        return [finding for finding in self._session.report if finding.rule not in _left_out(item)]

    def _fails(self, finding: KernelFinding) -> bool:
        """Advice alone does not make a kernel wrong, unless it was asked for."""
        return finding.severity > Severity.NOTE or finding.rule in self._added

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """The report of a test knows what was checked."""
        report = yield
        if call.when == "call":
            seen, found = self._session.report, self._found(item)
            alone = len(grouped(found))
            report.bragg_check = asdict(_Checked(seen.launches, seen.programs, alone, len(found) - alone))  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what was checked."""
        checked = getattr(report, "bragg_check", None)
        if checked is not None:
            self._checked.append(_Checked(**checked))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was checked, and when nothing was."""
        terminalreporter.section("bragg check")
        terminalreporter.write_line(_summary(self._checked))


def _left_out(item: pytest.Item) -> set[str]:
    """Checkers whose findings are meant in a test, by its marks."""
    return {name for mark in item.iter_markers("bragg_without") for name in mark.args}


def _text(findings: Sequence[KernelFinding]) -> str:
    return "\n".join(map(printable, grouped_lines(findings))).rstrip()


def _summary(checked: Sequence[_Checked]) -> str:
    launches = sum(one.launches for one in checked)
    if not launches:
        return "nothing was checked: no test launched a Triton kernel"
    programs = count_text(sum(one.programs for one in checked), "program")
    found = sum(one.findings for one in checked)
    counted = count_text(found, "finding") if found else "no findings"
    followers = sum(one.followers for one in checked)
    follow = f" ({followers} more may follow)" if followers else ""
    tests = count_text(sum(one.launches > 0 for one in checked), "test")
    return f"{counted}{follow} in {launches:,} launch{'es' if launches > 1 else ''} of {programs}, by {tests}"
