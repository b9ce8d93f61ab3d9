"""The verbs of the command line, loaded when they are used."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path, PurePath
from shlex import quote

import click

from bragg.errors import UsageError
from bragg.registry import load

__all__ = ["VERBS", "VerbGroup"]


@dataclass(frozen=True)
class Verb:
    """A row of the table of verbs.

    Attributes:
        place: `module:object` of the click command.
        summary: One line for the list of commands.
    """

    place: str
    summary: str


VERBS = {
    "run": Verb("bragg.cli.verbs.run:run", "record a program"),
    "analyze": Verb("bragg.cli.verbs.analyze:analyze", "say why a program is slow and what to change first"),
    "view": Verb("bragg.cli.verbs.view:view", "show where the time went, as a tree or a table"),
    "tally": Verb("bragg.cli.verbs.tally:tally", "count what ran, of one process or of all ranks of a job"),
    "web": Verb("bragg.cli.verbs.web:web", "show profiles in a browser and follow their changes"),
    "diff": Verb("bragg.cli.verbs.diff:diff", "compare two profiles; fail if something became slower"),
    "ranks": Verb("bragg.cli.verbs.ranks:ranks", "say which rank of a job the others wait for, and why"),
    "source": Verb("bragg.cli.verbs.source:source", "show the code of a kernel or of the program, with times by line"),
    "plot": Verb("bragg.cli.verbs.plot:plot", "draw how near kernels come to the peak of their GPU"),
    "report": Verb("bragg.cli.verbs.report:report", "write a profile as one HTML page"),
    "export": Verb("bragg.cli.verbs.export:export", "write a profile for another tool"),
    "info": Verb("bragg.cli.verbs.info:info", "show what a profile holds and how it was recorded"),
    "recover": Verb("bragg.cli.verbs.recover:recover", "make profiles of what a killed run left behind"),
    "check": Verb("bragg.cli.verbs.check:check", "find bugs in Triton kernels, without a GPU"),
    "debug": Verb("bragg.cli.verbs.debug:debug", "step through Triton kernels, without a GPU"),
    "doctor": Verb("bragg.cli.verbs.doctor:doctor", "check what can be recorded on this machine"),
    "mcp": Verb("bragg.cli.verbs.mcp:mcp", "serve these commands to programs, over MCP"),
    "demo": Verb("bragg.cli.verbs.demo:demo", "record and show a small program"),
}


# What other profilers call it.
_ELSEWHERE = {
    "compare": "diff",
    "exec": "run",
    "flame": "report",
    "flamegraph": "report",
    "gate": "diff --gate step",
    "html": "report",
    "launch": "run",
    "open": "view",
    "profile": "run",
    "record": "run",
    "serve": "web",
    "show": "view",
    "start": "run",
    "stat": "view --flat",
    "stats": "view --flat",
    "summary": "view",
    "timeline": "report",
    "top": "view --flat",
    "trace": "run --data trace",
    "tui": "view --tui",
    "version": "--version",
}
_OF_FILES = {".py": "run", ".ipynb": "run", ".bragg": "view", ".part": "view"}


def _meant(word: str) -> str:
    """What a word that is not a verb stands for: one of another profiler, a file, or a mistake in writing."""
    if verb := _OF_FILES.get(PurePath(word).suffix):
        return f"{verb} {quote(word)}"
    return _ELSEWHERE.get(word) or next(iter(difflib.get_close_matches(word, VERBS, n=1)), "")


class VerbGroup(click.Group):
    """A click group that imports a verb's module only when the verb is used."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read a command line, in which `help view` is `view --help`."""
        return super().parse_args(ctx, [*args[1:2], "--help"] if args[:1] == ["help"] else args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb; None for an unknown name."""
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        command: click.Command = load(verb.place)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb of a command line; a profile without one is viewed.

        Raises:
            UsageError: There is no such verb; the hint names the nearest.
        """
        if args[0] not in VERBS and _OF_FILES.get(PurePath(args[0]).suffix) == "view" and Path(args[0]).is_file():
            args = ["view", *args]
        if args[0] not in VERBS and not ctx.resilient_parsing:
            meant = _meant(args[0])
            hint = f"Did you mean: bragg {meant}" if meant else f"Commands: {', '.join(VERBS)}"
            raise UsageError(f"there is no command {args[0]!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])
