"""What a shell offers for the word that is being typed: metrics, formats, checkers, rules, gates, counters, kernels.

Enabled by `eval "$(_BRAGG_COMPLETE=bash_source bragg)"`, `zsh_source` or `fish_source`. A shell must not wait and shows
no errors, so what cannot be found offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem, FishComplete, add_completion_class

from bragg.errors import BraggError
from bragg.registry import ANNOTATIONS, CHECKERS, RULES

if TYPE_CHECKING:
    import click

    from bragg.model import Profile


_LARGE_BYTES = 50_000_000  # Reading it takes longer than a shell may wait.
_GATES = ("total", "wall", "step", "rows", "region:", "path:", "kernel:")
_PREFIX = ","
_Complete = Callable[["click.Context", "click.Parameter", str], list[CompletionItem]]


@add_completion_class
class ListsInFish(FishComplete):
    """Offers fish lists such as `time,count` whole: click's script cuts a value at its first comma."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


def _starting(incomplete: str, words: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def metrics(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Metrics of the profile on the command line, after the last comma, with those that are computed from them."""
    from bragg.views.terminal.columns import short_names
    from bragg.views.terminal.derived_metrics import DERIVED

    profile = _profile(context)
    if profile is None:
        return []
    before, comma, last = incomplete.rpartition(_PREFIX)
    short = sorted({name for names in short_names(profile).values() for name in names})
    derived = [name for name in DERIVED.names(profile) if last and ("/" in last or "/" not in name)]
    known = dict.fromkeys([*profile.metrics, *short, *derived])
    return _starting(incomplete, [f"{before}{comma}{name}" for name in known])


def kernels_and_files(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Kernels of the profile on the command line, those with code if there are any, and files of its program."""
    from bragg.analyze.kernel_choice import every_kernel
    from bragg.analyze.program_lines import program_files

    profile = _profile(context)
    if profile is None:
        return []
    choices = every_kernel(profile)
    with_code = [choice for choice in choices if choice.code]
    names = sorted(choice.name for choice in with_code or choices)
    return _starting(incomplete, [*names, *(Path(file).name for file in program_files(profile))])


def gates(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What `bragg diff --gate` judges."""
    return _starting(incomplete, _GATES)


def writable_formats(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Formats that `bragg export` writes."""
    from bragg.formats import writable

    return _starting(incomplete, writable())


def checkers(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Checkers of `bragg check`."""
    return _starting(incomplete, CHECKERS)


def rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Rules of `bragg analyze`."""
    return _starting(incomplete, RULES)


def counters(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Sets and counters of `bragg run --counters`, after the last comma."""
    from bragg.record.counter_names import COUNTERS, SETS

    before, comma, _ = incomplete.rpartition(_PREFIX)
    return _starting(incomplete, [f"{before}{comma}{name}" for name in (*SETS, *COUNTERS)])


def finding_formats(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Formats of the findings of `bragg check`."""
    return _starting(incomplete, ANNOTATIONS)


def programs(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files: the program and its arguments."""
    return [CompletionItem(incomplete, type="file")]


def _profile(context: click.Context) -> Profile | None:
    """The profile that the words before name, or the newest one here; None if there is none that is read at once."""
    from bragg import formats
    from bragg.cli.profile_file import newest_profile_or_job
    from bragg.formats.job.directory import read_job

    # Click leaves the words before an option without its value where they were.
    named = context.params.get("file") or next(iter([*(context.params.get("files") or ()), *context.args]), None)
    try:
        path = newest_profile_or_job(named and Path(named))
        if path.is_dir():
            path = read_job(path).ranks[0].path
        return None if path.stat().st_size > _LARGE_BYTES else formats.load(path, trace=False)
    except (BraggError, OSError):
        return None
