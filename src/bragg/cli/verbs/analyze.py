"""`bragg analyze`: why a program is slow, and what to change first."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bragg.cli.completion import rules as completed_rules
from bragg.cli.console import say, stream_style, write_json, write_lines
from bragg.cli.profile_file import READABLE, loaded, newest_profile, newest_profile_or_job
from bragg.cli.progress import working
from bragg.errors import UsageError

if TYPE_CHECKING:
    from bragg.analyze.report import Answered


_FINDINGS = 3
_EPILOG = """\b
Examples:
  bragg analyze train.bragg
  bragg analyze train.bragg --least-gain 5% --fail-on likely
  bragg analyze train.bragg --bundle matmul_kernel -o matmul
"""


def _share(_: click.Context, __: click.Parameter, text: str) -> float:
    """`2%` or `0.02` as 0.02."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"--least-gain {text} is not a share", hint="Write 2%, or 0.02")
    return value


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, type=READABLE)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="NAME",
    shell_complete=completed_rules,
    help="Ask this rule alone; several times: these.",
)
@click.option("--least-gain", default="1%", callback=_share, help="Show findings that save this much wall time.  [1%]")
@click.option(
    "--fail-on",
    type=click.Choice(["heuristic", "likely", "proven"]),
    help="Exit with 3 if there is a finding this sure that saves at least --least-gain.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--brief", is_flag=True, help="Print one JSON object of at most 2 kB: for programs that read the answer.")
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, which editors show at the lines.")
@click.option("--markdown", is_flag=True, help="Print Markdown, for comments on a change.")
@click.option(
    "--bundle",
    metavar="KERNEL",
    help="Write this kernel's code, facts and a script that runs it alone.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The directory of --bundle.  [KERNEL-bundle]")
@click.pass_context
def analyze(
    context: click.Context,
    files: tuple[Path, ...],
    rules: tuple[str, ...],
    least_gain: float,
    fail_on: str | None,
    as_json: bool,
    brief: bool,
    sarif: bool,
    markdown: bool,
    bundle: str | None,
    output: Path | None,
) -> None:
    """Say why the program in FILES is slow: what to change first, what it gains, and the evidence.

    The gain is wall time: work that hides behind the host gains nothing. The default is the newest profile in this
    directory. Exit code 3: see --fail-on.
    """
    from bragg.analyze.report import answered
    from bragg.cli.rank_files import with_rank_findings
    from bragg.model import Confidence

    if sum((as_json, brief, sarif, markdown)) > 1:
        raise UsageError("--json, --brief, --sarif and --markdown exclude each other", hint="Choose one")
    if bundle is not None and not files and Path(bundle).is_file():
        raise UsageError("--bundle needs the name of a kernel", hint=_bundle_example(Path(bundle)))
    paths = [newest_profile(file) for file in files or [None]]
    if bundle is not None:
        if len(paths) > 1:
            raise UsageError("--bundle takes one profile", hint=f"For example: bragg analyze {paths[0]} --bundle NAME")
        _write_bundle(paths[0], bundle, output)
        return
    if output is not None:
        raise UsageError("-o is for --bundle", hint="For example: bragg analyze --json > findings.json")
    answers = []
    for file, path in zip(files or [None], paths, strict=True):
        profile = loaded(path)
        with working(f"Analyzing {path}"):
            answer = answered(profile, rules, name=str(path))
            answers.append(answer if rules else with_rank_findings(answer, newest_profile_or_job(file)))
    _write(
        answers, least_gain, as_json=as_json, brief=brief, sarif=sarif, markdown=markdown, is_named=list(files) == paths
    )
    if fail_on is not None:
        least = Confidence[fail_on.upper()]
        found = (finding for one in answers for finding in one.worth(least_gain) if finding.gain is not None)
        if any(finding.confidence >= least for finding in found):
            context.exit(_FINDINGS)


def _bundle_example(path: Path) -> str:
    from bragg.analyze.bundle.files import kernels_with_code

    kernels = kernels_with_code(loaded(path))
    return f"For example: bragg analyze {path} --bundle {kernels[0] if kernels else 'NAME'}"


def _write_bundle(path: Path, kernel: str, output: Path | None) -> None:
    from bragg.analyze.bundle.files import SCRIPT, bundle_of

    bundle = bundle_of(loaded(path), kernel)
    directory = output or Path(re.sub(r"\W+", "_", kernel).strip("_") + "-bundle")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        bundle.write(directory)
    except OSError as error:
        raise UsageError(f"cannot write {directory}: {error.strerror}", hint="Say another directory with -o") from None
    write_lines([f"{directory}: {', '.join(bundle.files)}, of {bundle.kernel}"])
    if bundle.others:
        say([f"{kernel} also means {', '.join(bundle.others)}"])
    if SCRIPT in bundle.files:
        write_lines([f"Compile it, and time it alone: python {directory / SCRIPT} --help"])


def _write(
    answers: list[Answered],
    least_gain: float,
    *,
    as_json: bool,
    brief: bool,
    sarif: bool,
    markdown: bool,
    is_named: bool,
) -> None:
    from bragg.cli.annotations.sarif import analysis_lines as sarif_lines
    from bragg.views.text.analysis_formats import brief_json, markdown_lines
    from bragg.views.text.analysis_text import analysis_lines

    if as_json:
        write_json("analyze", {"profiles": [one.to_json(least_gain) for one in answers]})
    elif brief:
        write_json("analyze-brief", brief_json(answers, least_gain))
    elif sarif:
        write_lines(
            sarif_lines([(each, one.code_of(each)) for one in answers for each in one.worth(least_gain)], Path.cwd())
        )
    elif markdown:
        write_lines(line for one in answers for line in markdown_lines(one, least_gain))
    else:
        style = stream_style(sys.stdout)
        for one in answers:
            title = [] if is_named and len(answers) == 1 else [style.bold(one.name)]
            write_lines([*title, *analysis_lines(one, style, least_gain)])
