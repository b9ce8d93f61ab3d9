from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bragg.cli import output_file, progress
from bragg.cli.progress import StatusLine, working
from tests.unit.cli.conftest import Bragg

_DEADLINE_S = 60


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")


def test_what_takes_less_than_a_second_shows_nothing() -> None:
    times = iter([0.0, 0.9, 1.1, 1.2, 1.35])
    terminal = Terminal()
    status = StatusLine(terminal, lambda: next(times))
    status.show(lambda: "Reading a.bragg")
    assert terminal.getvalue() == ""
    status.show(lambda: "Reading a.bragg")
    assert terminal.getvalue() == "\rReading a.bragg… 1 s\x1b[K\r"
    status.show(lambda: pytest.fail("shown again after 0.1 s"))
    status.show(lambda: "Reading a \x1b[31m name that is longer than the terminal")
    assert "\x1b[31m" not in terminal.getvalue()
    last = terminal.getvalue().split("\r")[-2]
    assert len(last.removesuffix("\x1b[K")) <= 39
    status.end()
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("term", ["dumb", None])
def test_nothing_is_shown_where_there_is_no_terminal(term: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal() if term else io.StringIO()
    monkeypatch.setenv("TERM", term or "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    with working("Reading"):
        assert not StatusLine(stream).is_possible
    assert stream.getvalue() == ""


def test_a_line_of_work_is_gone_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    shown = []
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.001)
    show = StatusLine.show

    def noted(self: StatusLine, make: progress.Callable[[], str]) -> None:
        show(self, make)
        shown.append(make())

    monkeypatch.setattr(StatusLine, "show", noted)

    def work() -> None:
        with working("Reading") as tell:
            tell("Comparing")
            while "Comparing" not in shown:
                pass
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert "\rComparing… 0 s" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_an_interrupt_leaves_no_half_file(
    bragg: Bragg, profile_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept.html").write_text("the earlier page")
    for command in (
        ["report", "-o", "new.html"],
        ["report", "-o", "kept.html", "--force"],
        ["diff", profile_file, "--html", "new.html"],
    ):
        before = sorted(tmp_path.iterdir())
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            assert bragg(command[0], profile_file, *command[1:]).exit_code == 130
        assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "kept.html").read_text() == "the earlier page"
    for format_name in ("hatchet", "chrome_trace", "speedscope", "collapsed"):
        before = sorted(tmp_path.iterdir())
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            bragg("export", profile_file, "-f", format_name, "-o", f"new.{format_name}")
        assert sorted(tmp_path.iterdir()) == before


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output_file.write_text(pipe, "content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert pipe.is_fifo()


def test_ctrl_c_while_a_file_is_read_ends_with_130_and_a_clean_line(tmp_path: Path) -> None:
    program = (
        "import sys, time; from bragg.cli import progress, main; from bragg import formats\n"
        "progress._PATIENCE_S = 0.0\n"
        "formats.load = lambda *a, **k: time.sleep(60)\n"
        "sys.exit(main.main(['report', 'a.bragg']))\n"
    )
    (tmp_path / "a.bragg").touch()
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", program], stderr=theirs, cwd=tmp_path)
    os.close(theirs)
    seen = b""
    while b"Reading a.bragg" not in seen:
        seen += os.read(ours, 1000)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=_DEADLINE_S) == 130
    with suppress(OSError):  # the other side is closed
        while more := os.read(ours, 1000):
            seen += more
    os.close(ours)
    assert b"Traceback" not in seen
    assert seen.rstrip().endswith(b"\r\x1b[K")
    assert not (tmp_path / "a.html").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["analyze"], ["Reading {}", "Analyzing {}"]),
        (["report", "-o", "new.html"], ["Reading {}", "Making new.html"]),
        (["export", "-f", "speedscope", "-o", "new.json"], ["Reading {}", "Writing new.json"]),
    ],
    ids=lambda value: value[0],
)
def test_long_commands_say_each_step(
    bragg: Bragg, profile_file: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], said: list[str]
) -> None:
    steps: list[str] = []

    @contextmanager
    def noting(text: str) -> Iterator[progress.Callable[[str], None]]:
        steps.append(text)
        yield steps.append

    for module in ("profile_file", "verbs.analyze", "verbs.report", "verbs.export"):
        monkeypatch.setattr(f"bragg.cli.{module}.working", noting)
    assert bragg(command[0], profile_file, *command[1:]).exit_code == 0
    assert steps == [text.format(profile_file) for text in said]
