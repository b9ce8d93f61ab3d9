"""A plugin of pytest: `--bragg` records each test into a profile of its own, `--bragg-check` checks its Triton kernels.

Every run of pytest imports this module, so it loads nothing else of bragg until a test is recorded or checked.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

    from bragg.model import Profile
    from bragg.record.inside.session import Session

__all__ = ["pytest_addoption", "pytest_configure"]

_LONGEST_NAME = 120
_UNSAFE = re.compile(r"[^\w.,=+@\[\]-]+")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("bragg", "profiles of tests, checks of their Triton kernels")
    group.addoption("--bragg", action="store_true", help="Record each test into a profile of its own.")
    group.addoption(
        "--bragg-dir", default="bragg-results", metavar="DIR", help="Directory of the profiles.  [bragg-results]"
    )
    group.addoption(
        "--bragg-lines", type=int, default=10, metavar="N", help="Slowest tests in the summary; 0: all.  [10]"
    )
    group.addoption(
        "--bragg-fail-on",
        choices=["heuristic", "likely", "proven"],
        help="With --bragg, a test fails if bragg analyze finds something this sure in its profile.",
    )
    group.addoption(
        "--bragg-check", action="store_true", help="Check the Triton kernels of each test; a bug fails the test."
    )
    group.addoption("--bragg-add", action="append", default=[], metavar="CHECKER", help="Use this checker too.")
    group.addoption("--bragg-without", action="append", default=[], metavar="CHECKER", help="Leave this checker out.")
    group.addoption(
        "--bragg-target",
        default="",
        metavar="GPU",
        help="Check for this GPU: sm_90, gfx942, any.  [the machine's, else sm_90]",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Record or check only when asked to."""
    config.addinivalue_line("markers", "bragg_without(*checkers): do not fail this test by what they find")
    if config.getoption("--bragg") and config.getoption("--bragg-check"):
        raise pytest.UsageError("--bragg records kernels, and --bragg-check executes them otherwise: choose one")
    if config.getoption("--bragg"):
        config.pluginmanager.register(_TestProfiler(config), "bragg-profiler")
    if config.getoption("--bragg-check"):
        config.pluginmanager.register(_checker(config), "bragg-checker")


def _checker(config: pytest.Config) -> object:
    from bragg.errors import BraggError
    from bragg.pytest_checks import TestChecker

    try:
        return TestChecker(*map(config.getoption, ("--bragg-add", "--bragg-without", "--bragg-target")))
    except BraggError as error:
        raise pytest.UsageError(f"{error}: {error.hint}" if error.hint else str(error)) from None


@dataclass(frozen=True)
class _Measured:
    """What one test did; it travels with the test's report from workers of pytest-xdist.

    Attributes:
        nodeid: The test.
        path: Its profile; empty when there is none.
        gpu_ns: GPU time.
        kernels: Kernels that were launched.
        host_ns: Host time, where no GPU was recorded.
        problem: Why there is no profile; empty when there is one, or nothing was measured.
    """

    nodeid: str
    path: str = ""
    gpu_ns: float = 0.0
    kernels: int = 0
    host_ns: float = 0.0
    problem: str = ""


_MEASURED = pytest.StashKey[_Measured]()


class _TestProfiler:
    def __init__(self, config: pytest.Config) -> None:
        self._here = config.invocation_params.dir
        self._directory = self._here / str(config.getoption("--bragg-dir"))
        self._n_lines = int(config.getoption("--bragg-lines"))
        self._fail_on: str | None = config.getoption("--bragg-fail-on")
        self._measured: list[_Measured] = []
        _execute_kernels_without_gpu()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        session = self._start(item)
        try:
            returned = yield
        finally:
            if session is not None:
                item.stash[_MEASURED] = _stop(session, item.nodeid)
        self._judge(item)
        return returned

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call" and _MEASURED in item.stash:
            report.bragg = asdict(item.stash[_MEASURED])  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        measured = getattr(report, "bragg", None)
        if measured is not None:
            self._measured.append(_Measured(**measured))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = _summary_lines(self._measured, self._n_lines, self._here)
        if lines:
            terminalreporter.section("bragg")
            terminalreporter.write("".join(f"{line}\n" for line in lines))

    def _judge(self, item: pytest.Item) -> None:
        path = item.stash[_MEASURED].path
        if self._fail_on is None or not path:
            return
        from bragg import load
        from bragg.model import Confidence
        from bragg.views.text.finding_text import finding_line

        least = Confidence[self._fail_on.upper()]
        found = [finding for finding in load(path).findings() if finding.gain and finding.confidence >= least]
        if found:
            pytest.fail("\n".join(map(finding_line, found)), pytrace=False)

    def _start(self, item: pytest.Item) -> Session | None:
        """Start to record a test; whatever is wrong with that is not the test's fault."""
        import bragg

        path = self._directory / profile_name(item.nodeid)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return bragg.start(str(path).replace("%", "%%"), force=True)
        except Exception as error:  # noqa: BLE001
            item.stash[_MEASURED] = _Measured(item.nodeid, problem=str(error))
            return None


def _execute_kernels_without_gpu() -> None:
    """Triton's kernels and tensors on `cuda` are executed on the CPU where there is no GPU, as by `bragg run`."""
    from bragg.record.config import RecordConfig
    from bragg.record.hooks.imports import when_imported

    def interpret(triton: ModuleType) -> None:
        from bragg.interpreted import interpret_launches

        interpret_launches(triton, RecordConfig().options())

    when_imported("triton", interpret)


def _stop(session: Session, nodeid: str) -> _Measured:
    from bragg.errors import NothingRecorded

    try:
        if not session.running:
            return _Measured(nodeid, problem="the test stopped its recording")
        return _measure(session.stop(), str(session.path), nodeid)
    except NothingRecorded:
        return _Measured(nodeid)
    except Exception as error:  # noqa: BLE001
        return _Measured(nodeid, problem=str(error))


def _measure(profile: Profile, path: str, nodeid: str) -> _Measured:
    from bragg.model import FrameKind

    totals = {name: profile.total(name) if name in profile.metrics else 0 for name in ("gpu_time", "host_time")}
    is_kernel = profile.tree.kind == FrameKind.KERNEL
    kernels = profile.own("gpu_count")[is_kernel].sum() if "gpu_count" in profile.metrics else 0
    return _Measured(nodeid, path, float(totals["gpu_time"]), int(kernels), float(totals["host_time"]))


def profile_name(nodeid: str) -> Path:
    """Where the profile of a test is, below the directory of all: `tests/test_a.py/test_b[1].bragg`.

    Names that had to change end with a hash, so that no two tests share one.
    """
    file, _, test = nodeid.partition("::")
    wanted = test.replace("::", ".") or "test"
    name = _UNSAFE.sub("_", wanted)[:_LONGEST_NAME]
    if name != wanted:
        name += f"-{hashlib.sha1(nodeid.encode(), usedforsecurity=False).hexdigest()[:8]}"
    return Path(*(part for part in PurePosixPath(file).parts if part not in ("/", "..")), f"{name}.bragg")


def _summary_lines(measured: list[_Measured], n_lines: int, here: Path) -> list[str]:
    """The tests that took the GPU longest, or the host where there is no GPU; then what is not there and why."""
    from bragg.views.text.units import count_text

    if not measured:
        return []
    recorded = sorted((test for test in measured if test.path), key=lambda test: (-test.gpu_ns, -test.host_ns))
    shown = recorded[: n_lines or None]
    lines = [f"{_cost_text(test)}  {test.nodeid}" for test in shown]
    if len(recorded) > len(shown):
        lines.append(f"and {count_text(len(recorded) - len(shown), 'more test')}")
    empty = sum(not test.path and not test.problem for test in measured)
    if empty:
        lines.append(f"{count_text(empty, 'test')} did nothing that can be measured, or failed before it did")
    lines += [f"not recorded: {test.nodeid}: {test.problem}" for test in measured if test.problem]
    return [*lines, *(f"Next: bragg view '{test.path.removeprefix(f'{here}/')}'" for test in shown[:1])]


def _cost_text(test: _Measured) -> str:
    from bragg.views.text.units import count_text, time_text

    if test.gpu_ns:
        return f"{time_text(test.gpu_ns):>9} GPU  {count_text(test.kernels, 'kernel'):>12}"
    return f"{time_text(test.host_ns):>9} host {'':>12}"
