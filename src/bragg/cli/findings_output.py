"""Where the findings of a check go, and in which form."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from bragg.cli.console import say, write_json, write_lines
from bragg.cli.output_file import refuse_existing, write_text
from bragg.errors import UsageError
from bragg.registry import ANNOTATIONS

if TYPE_CHECKING:
    from bragg.cli.annotations.outcome import Outcome
    from bragg.debug.report import Report


@dataclass(frozen=True)
class FindingsOutput:
    """How findings are written.

    Attributes:
        format_name: A row of `ANNOTATIONS`; None: as text, or JSON.
        file: Where that goes, beside text on stdout; None: to stdout, with a summary on stderr.
        as_json: As one JSON object on stdout.
        profile: The profile that gets them, too; None: none.
        is_brief: Text says how many there are.
    """

    format_name: str | None = None
    file: Path | None = None
    as_json: bool = False
    profile: Path | None = None
    is_brief: bool = False

    def write(self, outcome: Outcome, *, has_text: bool) -> None:
        """Write the findings of a check that is over.

        Args:
            outcome: What it has come to.
            has_text: There is something to say in text.
        """
        self._write(outcome, has_text=has_text)
        if self.profile is not None and outcome.report.launches:
            self._add_to(self.profile, outcome.report)

    def _write(self, outcome: Outcome, *, has_text: bool) -> None:
        report = outcome.report
        if self.format_name is not None:
            lines = ANNOTATIONS[self.format_name](outcome)
            if self.file is None:
                write_lines(lines)
                say([report.summary()])
                return
            write_text(self.file, "".join(f"{line}\n" for line in lines))
        if self.as_json:
            write_json("check", report.to_json())
        elif has_text:
            write_lines(report.brief_lines() if self.is_brief else report.lines())

    def next_step(self, report: Report, program: str) -> str:
        """The command that shows more of what was found; empty: there is none.

        Args:
            report: The findings.
            program: The program, as it stands in a command.
        """
        if self.is_brief:
            return f"bragg check {program}" if len(report) else ""
        is_text_alone = self.format_name is None and not self.as_json and self.profile is None
        if is_text_alone and report.launches and not len(report) and not report.verdicts.are_varied:
            return f"bragg check --all {program}  (also in another order and with other block sizes)"
        stop = _stop(report) if is_text_alone else ""
        return f"bragg debug {stop} {program}" if stop else ""

    def _add_to(self, profile: Path, report: Report) -> None:
        from bragg.cli.annotations.carried import carry_findings
        from bragg.views.text.units import count_text

        doubt = carry_findings(profile, [finding.to_finding() for finding in report], report.verdicts.kernels())
        say([f"warning: {doubt}"] if doubt else [])
        say([f"Added {count_text(len(report), 'finding')} to {profile}. Next: bragg report {quote(str(profile))}"])


def _stop(report: Report) -> str:
    """Options that make `bragg debug` stop at the first finding; empty: nothing stops there."""
    from bragg.debug.findings import program_ids

    found = report.first_stop
    if found is None:
        place = next((f"{one.file}:{one.line}" for one in report.findings if one.address), "")
        return f"--break {quote(os.path.relpath(place))}" if place else ""
    number = report.program_to_stop_at(found)
    if number is None:
        return f"--break-on {found.rule}"
    return f"--break-on {found.rule} --at-program {','.join(map(str, program_ids(number, found.grid)))}"


def chosen_output(
    format_name: str | None, file: Path | None, force: bool, *, as_json: bool, profile: Path | None = None
) -> FindingsOutput:
    """What options of a command ask for, before the program runs.

    Raises:
        UsageError: They contradict each other, or the file exists.
        BadFile: The profile cannot be read.
    """
    if format_name is not None:
        ANNOTATIONS[format_name]
    if file is not None:
        if format_name is None:
            raise UsageError("--output needs a format", hint=f"Choose one with -f: {', '.join(ANNOTATIONS)}")
        refuse_existing(file, force)
    if as_json and format_name is not None and file is None:
        raise UsageError(f"--json and {format_name} cannot both be on stdout", hint="Name a file with -o")
    if profile is not None:
        from bragg.formats.bragg import read

        read(profile, trace=False)
    return FindingsOutput(format_name, file and file.absolute(), as_json, profile and profile.absolute())
