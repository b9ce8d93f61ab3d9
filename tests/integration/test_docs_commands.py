"""The commands of the documentation: blocks marked `console` are run and their output is compared.

A block holds commands behind `$` and below each what it prints; a line `...` stands for any lines. The blocks of a page
run in order, in a directory with `sample-h100.bragg` and the examples. Output is compared to the letter. Two things
depend on the machine: recordings that are made here, and lines `Wrote FILE (size)`; there figures, units, bars and
widths are left out of the comparison. All other commands of the pages need a GPU, a network or a file of the reader's:
their names and options are looked up.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click
import pytest

from bragg.cli.main import command_line, main
from tests.support.recordings import SAMPLE
from tests.support.runs import IS_BUSY

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
# What starts another program is run as a process of its own.
IN_OWN_PROCESS = {"run", "check", "debug"}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
FIGURE = re.compile(r"<?\d[\d,.]*(?: (?:ns|us|ms|s|min|kB|MB|B)\b)?|[█-▏]+")
INTERPRETER = re.compile(r"\bpython[\d.]* ")
UNIT_OF_COLUMN = re.compile(r"(?<=_time) (?:ns|us|ms|s)\b")


def consoles(page: Path) -> str:
    """The text of all blocks of a page that are run."""
    return "".join(text for kind, text in BLOCK.findall(page.read_text()) if kind == "console")


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of bragg in a page, without what a shell does behind it."""
    for kind, text in BLOCK.findall(page.read_text()):
        for line in re.findall(r"^(?:\$ )?(bragg [a-z].*)$", text, re.MULTILINE) if kind in ("", "console") else []:
            words = shlex.split(line, comments=True)
            end = next((i for i, word in enumerate(words) if word in ("|", ">", "&&")), len(words))
            yield words[1:end]


def output_of(arguments: list[str]) -> str:
    """What a command prints, data and talk in their order."""
    if arguments[0] not in IN_OWN_PROCESS:
        with io.TextIOWrapper(io.BytesIO(), "utf-8") as printed, redirect_stdout(printed), redirect_stderr(printed):
            main(arguments)
            printed.seek(0)
            return printed.read()
    run = [sys.executable, "-u", "-m", "bragg", *arguments]
    result = subprocess.run(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    return result.stdout


def comparable(text: str, is_measured: bool) -> str:
    """Text without what differs from machine to machine."""
    lines = [line for line in text.splitlines() if not (is_measured and line.startswith(IS_BUSY))]
    return "".join(f"{masked(line) if is_measured or line.startswith('Wrote ') else line.rstrip()}\n" for line in lines)


def masked(line: str) -> str:
    """A line whose figures are all 0, without units of columns, bars and widths."""
    plain = UNIT_OF_COLUMN.sub("", INTERPRETER.sub("python ", line))
    figures = FIGURE.sub(lambda found: "0" if found[0].isascii() else "", plain)
    return " ".join(figures.split())


def matches(shown: str, printed: str) -> bool:
    """Whether the output is what a page shows; a line `...` of the page stands for any lines."""
    pattern = re.escape(shown).replace(re.escape("...\n"), r"(?:.*\n)*?")
    return re.fullmatch(pattern, printed) is not None


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files that the pages speak of, as the current one."""
    shutil.copy(SAMPLE, tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name in [name for name in os.environ if name.startswith("BRAGG_") or name in ("COLUMNS", "FORCE_COLOR")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page", [page for page in PAGES if consoles(page)], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_pages_show_what_commands_print(page: Path, desk: Path) -> None:
    if "bragg check" in consoles(page):
        pytest.importorskip("triton")
    for line, shown in COMMAND.findall(consoles(page)):
        arguments = shlex.split(line)
        assert arguments[0] == "bragg"
        is_measured = arguments[1] == "run" or any(
            word.endswith(".bragg") and word != SAMPLE.name for word in arguments
        )
        printed = comparable(output_of(arguments[1:]), is_measured)
        wanted = comparable(shown, is_measured)
        assert matches(wanted, printed), f"{line}\nprints\n{printed}\nand the page shows\n{wanted}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_options_exist(page: Path) -> None:
    for verb, *arguments in commands(page):
        command = command_line.get_command(click.Context(command_line), verb)
        assert command is not None, verb
        context = click.Context(command, info_name=verb, **command.context_settings)
        command.make_parser(context).parse_args(arguments)  # raises where there is no such option


def test_figures_of_a_measured_line_are_masked() -> None:
    assert masked(" 838 ms   57.6 % of host_time  … → f plain.py:19") == masked(
        "  1.2 s  7 % of host_time … → f plain.py:3"
    )
    assert masked("host_time ms    share") == masked("host_time s  share")
    assert masked("1.19   81.5 %  ██████▌   3  ├─ count") == masked("2.5   1.5 %  3  ├─ count")
    assert masked("python3.11 a.py ran 2 s") == masked("python a.py ran 31 ms")
    assert masked("f plain.py:19") != masked("g plain.py:19")


def test_dots_stand_for_any_lines() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert matches("a\n...\nd\n", "a\nd\n")
    assert not matches("a\n...\nd\n", "a\nb\n")
