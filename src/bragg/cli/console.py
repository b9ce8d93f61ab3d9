"""Where text goes: data to stdout, talk to stderr; and what each of them can show."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bragg.errors import BadFile
from bragg.views.text.style import Style, without_control

if TYPE_CHECKING:
    import click


# Raised when a reader of the JSON would have to change.
JSON_SCHEMA = "bragg/1"

ADDRESS_MARK = "://"
"""No path has it: `s3://bucket/train.job`."""
TALLY_ROWS = 20
"""Rows of each table of a tally, unless the user says otherwise."""


def write_lines(lines: Iterable[str]) -> None:
    """Write lines of data to stdout; what no view painted cannot act on a terminal.

    Raises:
        BadFile: They cannot be written; that nobody reads on, as behind `| head`, is not an error.
    """
    with _stdout():
        print(_joined(lines, sys.stdout), flush=True)


def write_bytes(content: bytes) -> None:
    """Write data that is not text to stdout."""
    with _stdout():
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


@contextmanager
def _stdout() -> Iterator[None]:
    """What the body writes goes to stdout, as far as anybody reads it."""
    try:
        yield
    except OSError as error:
        # What is still buffered must not fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            hint = "Free some space, or write elsewhere"
            raise BadFile(f"cannot write the output: {error.strerror}", hint=hint) from None


def write_json(view: str, values: dict[str, Any]) -> None:
    """Write one JSON object to stdout, on one line, with the name of its schema first."""
    write_lines([json.dumps({"schema": JSON_SCHEMA, "view": view, **values})])


def say(lines: Iterable[str]) -> None:
    """Talk to the user on stderr."""
    print(_joined(lines, sys.stderr), file=sys.stderr, flush=True)


def _joined(lines: Iterable[str], stream: TextIO) -> str:
    style = stream_style(stream)
    return "\n".join(without_control(line, style) for line in lines)


def stream_style(stream: TextIO) -> Style:
    """What a stream can show.

    `NO_COLOR` and `FORCE_COLOR` decide over colour, else a terminal has it; `COLUMNS` decides over the width of lines,
    else a terminal has one and a file has no limit.
    """
    is_terminal = stream.isatty()
    colour = bool(os.environ.get("FORCE_COLOR")) or (is_terminal and os.environ.get("TERM") != "dumb")
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() else shutil.get_terminal_size().columns if is_terminal else None
    return Style(
        colour=colour and not os.environ.get("NO_COLOR"),
        unicode=(stream.encoding or "").lower().startswith("utf"),
        width=width or None,
    )


def error_lines(message: str, hint: str) -> list[str]:
    """An error and what to do about it, one line each."""
    style = stream_style(sys.stderr)
    lines = [f"{style.bad('error:')} {' '.join(message.split())}"]
    return [*lines, f"hint: {' '.join(hint.split())}"] if hint else lines


def late_hint(command: click.Command, target: Sequence[str], *, is_refused: bool = False) -> str:
    """Where options behind the program belong; empty: there are none, or the program may mean them.

    Args:
        command: Of bragg.
        target: The program and what it gets.
        is_refused: The program did not know one of them; else those count that its text lacks.
    """
    own = {name for option in command.params for name in option.opts if name.startswith("--") or name == "-o"}
    late = [word for word in target[1:] if word.partition("=")[0] in own]
    if late and not is_refused:
        text = _text_of(Path(target[0]))
        late = [] if text is None else [word for word in late if word.partition("=")[0] not in text]
    if not late:
        return ""
    options, program = " ".join(late), " ".join(target[: 2 if target[0].startswith("-") else 1])
    behind = f"bragg {command.name} {options} … {program}"
    return f"hint: {options} went to {program}; options of bragg stand before it: {behind}"


def _text_of(script: Path) -> str | None:
    """The text of a Python program; None: it is another one, or cannot be read."""
    try:
        return script.read_text(encoding="utf-8") if script.suffix == ".py" else None
    except (OSError, ValueError):
        return None
