from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from bragg import formats
from bragg.cli import main as main_module
from bragg.cli.main import command_line, main
from bragg.cli.verbs import VERBS
from tests.support.profiles import profile_from_text
from tests.unit.cli.conftest import Bragg

# 80 ms on a quiet machine, of the 120 ms that are allowed; the rest is for machines that are slow or busy.
HELP_LIMIT_S = 0.4


def commands() -> dict[str, click.Command]:
    context = click.Context(command_line)
    found = {name: command_line.get_command(context, name) for name in VERBS}
    return {name: command for name, command in found.items() if command is not None}


def test_every_verb_of_the_table_exists() -> None:
    assert {name: command.name for name, command in commands().items()} == {name: name for name in VERBS}


@pytest.mark.parametrize("name", VERBS)
def test_help_of_every_verb_has_a_few_examples_and_fits_into_80_columns(name: str, bragg: Bragg) -> None:
    outcome = bragg(name, "--help")
    examples = outcome.stdout.partition("Examples:")[2].strip().splitlines()
    assert outcome.exit_code == 0
    assert len([line for line in examples if line.strip().startswith(f"bragg {name}")]) in (2, 3)
    assert max(map(len, outcome.stdout.splitlines())) <= 80


@pytest.mark.parametrize("name", [name for name in VERBS if name not in ("debug", "mcp")])  # which talk
def test_every_verb_with_a_result_has_json(name: str) -> None:
    options = {option for parameter in commands()[name].params for option in parameter.opts}
    assert "--json" in options


def test_help_lists_the_verbs_without_importing_them(bragg: Bragg) -> None:
    program = "import sys; from bragg.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert all(f"  {name}" in done.stdout for name in VERBS)
    assert {"numpy", "rich", "bragg.model", "bragg.formats", "bragg.record", "bragg.cli.verbs.run"} & set(
        done.stderr.split()
    ) == set()


def test_help_is_fast(bragg_process: Bragg) -> None:
    assert min(bragg_process("--help").cpu_s for _ in range(3)) <= HELP_LIMIT_S


def test_bragg_alone_says_on_one_screen_what_to_do(bragg: Bragg) -> None:
    outcome = bragg()
    assert outcome.exit_code == 0
    assert len(outcome.stdout.splitlines()) <= 24
    assert "bragg demo" in outcome.stdout


def test_version_is_that_of_the_package(bragg: Bragg) -> None:
    assert bragg("--version").stdout == f"bragg {import_module('bragg').__version__}\n"


def test_unknown_verb_names_the_nearest(bragg: Bragg) -> None:
    outcome = bragg("veiw")
    assert outcome.exit_code == 2
    assert outcome.stderr == "error: there is no command 'veiw'\nhint: Did you mean: bragg view\n"


def test_a_word_of_other_profilers_is_answered_with_the_command(bragg: Bragg) -> None:
    assert "hint: Did you mean: bragg run\n" in bragg("record", "train.py").stderr
    assert "hint: Did you mean: bragg view --flat\n" in bragg("top").stderr


@pytest.mark.parametrize(
    ("file", "meant"), [("train.py", "run train.py"), ("a b.bragg", "view 'a b.bragg'"), ("runs", "run")]
)
def test_a_file_instead_of_a_command_is_answered_with_the_command_for_it(bragg: Bragg, file: str, meant: str) -> None:
    assert bragg(file, "--epochs", "3").stderr.splitlines()[1] == f"hint: Did you mean: bragg {meant}"


def test_a_profile_without_a_command_is_viewed(bragg: Bragg, tmp_path: Path) -> None:
    file = tmp_path / "a.bragg"
    formats.export(profile_from_text("root\n  k 100us"), "bragg", file)
    assert bragg(str(file), "--flat").stdout == bragg("view", str(file), "--flat").stdout != ""


def test_help_is_a_command_too(bragg: Bragg) -> None:
    assert bragg("help", "view").stdout == bragg("view", "--help").stdout
    assert bragg("help").stdout == bragg("--help").stdout


def test_an_option_of_other_profilers_is_answered_with_ours(bragg: Bragg) -> None:
    assert bragg("view", "--top", "3").stderr.startswith("error: No such option '--top'. Did you mean '--lines'?\n")
    trace = bragg("run", "--trace", "train.py").stderr.splitlines()
    assert trace == ["error: No such option '--trace'. Did you mean '--data trace'?", "hint: Try: bragg run --help"]
    assert "Did you mean '--shapes'?" in bragg("run", "--record_shapes", "train.py").stderr
    assert "Did you mean 'bragg view --flat'?" in bragg("run", "--stats", "train.py").stderr
    assert bragg("view", "--by", "kernel").stderr.startswith("error: No such option '--by'. Did you mean '--group-by'?")


def test_an_option_of_the_program_before_it_is_answered_with_the_order(bragg: Bragg) -> None:
    hint = bragg("run", "--epochs", "1", "train.py").stderr.splitlines()[1]
    assert hint == "hint: Options of your program stand after it: bragg run train.py --epochs; of bragg run: --help"


def test_unknown_option_is_a_usage_error_in_two_lines(bragg: Bragg) -> None:
    outcome = bragg("view", "--nope")
    assert outcome.exit_code == 2
    assert outcome.stderr.splitlines()[0].startswith("error: No such option")
    assert outcome.stderr.splitlines()[1] == "hint: Try: bragg view --help"


def test_a_second_file_is_answered_with_quotes_and_with_what_takes_two(bragg: Bragg) -> None:
    outcome = bragg("view", "my", "run.bragg")
    assert outcome.exit_code == 2
    assert outcome.stderr.splitlines() == [
        "error: Got unexpected extra argument (run.bragg)",
        "hint: Quote a name with spaces; bragg diff compares two files; all options: bragg view --help",
    ]


def test_unexpected_failure_is_one_line_and_no_traceback(bragg: Bragg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_module.command_line, "main", broken)
    outcome = bragg("info")
    assert outcome.exit_code == 1
    assert outcome.stderr.splitlines()[0] == "error: bragg failed: ZeroDivisionError: division by zero"
    assert "Traceback" not in outcome.stderr


# Within 60 MB NumPy cannot be loaded, within 90 MB OpenBLAS ends the process, within 150 MB the core cannot be loaded.
@pytest.mark.parametrize("limit_mb", [60, 90, 150])
def test_a_program_runs_unrecorded_where_memory_is_limited(tmp_path: Path, limit_mb: int) -> None:
    done = limited_bragg(tmp_path, limit_mb, "run", "--json", "program.py")
    assert done.returncode == 3
    program, told = done.stdout.splitlines()
    note = f"program is not recorded: the limit of memory (ulimit -v: {limit_mb << 10} KB) leaves no room for bragg"
    assert program == "started"
    assert (json.loads(told)["exit_code"], json.loads(told)["notes"]) == (3, [note])
    hint = "hint: Raise it: bragg itself takes about 300 MB of addresses"
    assert done.stderr.splitlines() == [f"note: {note}", hint]


def test_a_limit_of_memory_is_an_error_where_a_recording_is_a_must(tmp_path: Path) -> None:
    done = limited_bragg(tmp_path, 40, "run", "--require-samples", "program.py")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.splitlines()[0] == "error: the limit of memory (ulimit -v: 40960 KB) leaves no room for bragg"


def limited_bragg(directory: Path, limit_mb: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    (directory / "program.py").write_text("print('started'); raise SystemExit(3)")
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit_mb} << 20,) * 2)"
    code = f"{limited}; import bragg.cli.main as m; raise SystemExit(m.main({list(arguments)}))"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=directory, capture_output=True, text=True, check=False, timeout=60
    )


def test_traceback_is_shown_when_it_is_asked_for(bragg: Bragg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_module.command_line, "main", broken)
    monkeypatch.setenv("BRAGG_LOG", "debug")
    assert "Traceback" in bragg("info").stderr


def test_interrupt_ends_with_the_code_of_shells(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise click.Abort

    monkeypatch.setattr(main_module.command_line, "main", interrupted)
    assert main(["info"]) == 130


@pytest.mark.parametrize(
    ("redirected", "exit_code", "talk"),
    [
        ("| true; exit ${PIPESTATUS[0]}", 0, ""),
        (">&-", 0, ""),
        (
            "> /dev/full",
            6,
            "error: cannot write the output: No space left on device\nhint: Free some space, or write elsewhere\n",
        ),
    ],
)
def test_output_that_nobody_reads_is_no_error_and_one_that_cannot_be_written_is(
    profile_file: Path, redirected: str, exit_code: int, talk: str
) -> None:
    command = f"{sys.executable} -m bragg view {profile_file} {redirected}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (exit_code, talk)


def test_error_without_a_stderr_has_its_exit_code(tmp_path: Path) -> None:
    command = f"{sys.executable} -m bragg info {tmp_path / 'nothing.bragg'} 2>&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (6, "")


def test_json_is_one_line_with_its_schema(bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg("info", profile_file, "--json")
    assert outcome.stdout.count("\n") == 1
    assert json.loads(outcome.stdout)["schema"] == "bragg/1"


def test_shell_completion_is_offered() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from bragg.cli.main import main; main()"],
        env={**os.environ, "_BRAGG_COMPLETE": "bash_source"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_bragg_completion" in done.stdout


def broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError("division by zero")
