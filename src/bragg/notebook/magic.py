"""`%load_ext bragg`: the cell magic `%%bragg`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

import bragg
from bragg.cli.console import error_lines, say, stream_style
from bragg.cli.verbs.run import run
from bragg.errors import BraggError, UsageError
from bragg.record.config import RecordConfig
from bragg.record.hooks.imports import when_imported
from bragg.record.inside.sessions import Options

if TYPE_CHECKING:
    from types import ModuleType

    from IPython.core.interactiveshell import InteractiveShell

    from bragg.model import Profile

__all__ = ["load_ipython_extension", "recording_options", "with_cell_names"]

_OUTPUT = "notebook.bragg"
_CELL = "the-cell"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add `%%bragg` to a shell, and execute Triton's kernels where there is no GPU; what `%load_ext bragg` calls."""

    def record_cell(line: str, cell: str) -> Profile | None:
        """Run a cell and show where its time went; the options are those of `bragg run`."""
        return _record(shell, line, cell)

    shell.register_magic_function(record_cell, magic_kind="cell", magic_name="bragg")
    when_imported("triton", partial(_execute_kernels_without_gpu, may_move_tensors="triton" not in sys.modules))


def _execute_kernels_without_gpu(triton: ModuleType, *, may_move_tensors: bool) -> None:
    """As `bragg run` does; tensors that cells have made before stay where they are."""
    from bragg.interpreted import interpret_launches

    interpret_launches(triton, RecordConfig().options(), may_move_tensors=may_move_tensors)


def recording_options(line: str) -> dict[str, Any]:
    """What the line of `%%bragg` asks for: `output`, and `bragg.record.inside.sessions.Options`.

    Raises:
        UsageError: An option is unknown, or means nothing in a cell.
    """
    try:
        context = run.make_context("%%bragg", [*shlex.split(line), _CELL])
    except click.exceptions.Exit as error:
        raise UsageError("the cell was not run: it asks for help", hint="Leave out --help") from error
    except (click.ClickException, ValueError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(message, hint="The options of bragg run: bragg run --help") from error
    given = {name: value for name, value in context.params.items() if value is not None and value is not False}
    if given.pop("target") != (_CELL,):
        raise UsageError("%%bragg runs the cell, no other program", hint="In a cell: !bragg run script.py")
    options = {"output": given.pop("output", _OUTPUT)}
    known = Options.__annotations__
    if strange := [name for name in given if name not in known]:
        raise UsageError(f"--{strange[0].replace('_', '-')} means nothing in a cell", hint="Leave it out")
    explicit = {name: context.params[name] for name in ("nvtx", "launch_metadata") if context.params[name] is not None}
    return {**options, **given, **explicit}


def _record(shell: InteractiveShell, line: str, cell: str) -> Profile | None:
    """The profile of a cell; None, and the reason on stderr, where there is none."""
    try:
        options = recording_options(line)
        session = bragg.start(options.pop("output"), **options)
        try:
            with _numbered_as_its_magic(shell):
                shell.run_cell(_below_its_magic(cell))
        finally:
            profile = bragg.stop(session)
        if session.path is not None:  # what `stop` returns has no timeline
            profile = with_cell_names(bragg.load(session.path), shell)
            say([f"Wrote {session.path}", *_best(profile)])
    except BraggError as error:
        say(error_lines(error.message, error.hint))
        return None
    return profile


@contextmanager
def _numbered_as_its_magic(shell: InteractiveShell) -> Iterator[None]:
    """Cells that are compiled inside have the number of the cell that the magic is in: IPython counts on before it."""
    own, compiler = len(shell.history_manager.input_hist_parsed) - 1, shell.compile
    cache = compiler.cache

    def cache_as_own(code: str, number: int = 0, raw_code: str | None = None) -> str:
        name: str = cache(code, own if number == own + 1 else number, raw_code)
        return name

    compiler.cache = cache_as_own
    try:
        yield
    finally:
        compiler.cache = cache


def _below_its_magic(cell: str) -> str:
    """The cell with the lines that the notebook counts, of which `%%bragg` is the first."""
    return cell if cell.startswith("%%") else f"# %%bragg\n{cell}"


def with_cell_names(profile: Profile, shell: InteractiveShell) -> Profile:
    """The profile with `In [3]` in place of the files that IPython makes up for cells."""
    numbers: dict[str, int] = getattr(shell.compile, "_filename_map", {})
    frames = profile.tree.frames
    if not numbers.keys() & set(frames.file):
        return profile
    files = [f"In [{numbers[file]}]" if file in numbers else file for file in frames.file]
    return replace(profile, tree=replace(profile.tree, frames=frames.replace(file=files)))


def _best(profile: Profile) -> list[str]:
    """What to change first, for readers who do not see the page."""
    from bragg.analyze.report import answered
    from bragg.views.text.analysis_text import best_findings, best_lines

    found = answered(profile)
    return list(best_lines(found, best_findings(found, 1), stream_style(sys.stderr)))
