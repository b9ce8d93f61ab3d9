from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.console import late_hint
from bragg.cli.verbs.run import run
from bragg.record import RecordConfig
from tests.support.runs import FLUSHED
from tests.unit.cli.conftest import Bragg

BUSY = """
import sys, time
def work():
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        sum(range(100))
work()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program that is busy for a while, then does what its first argument says."""
    path = tmp_path / "busy.py"
    path.write_text(f"{BUSY}\nif sys.argv[1:]: exec(sys.argv[1])\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (["train.py", "--epochs", "2", "-o", "x"], ("train.py", "--epochs", "2", "-o", "x")),
        (["-o", "x", "train.py", "--", "a"], ("train.py", "--", "a")),
        (["--", "torchrun", "-m", "train"], ("--", "torchrun", "-m", "train")),
        (["-m", "pkg.train", "--backend", "y"], ("-m", "pkg.train", "--backend", "y")),
        (["--gpu-api", "train.py", "sync"], ("train.py", "sync")),
        (["--gpu-api", "sync", "--sample", "train.py"], ("train.py",)),
        (["--json", "-m", "pkg.train"], ("-m", "pkg.train")),
        (["--instrument", "--", "a"], ("--", "a")),
        (["--instrument", "-m", "pkg.train"], ("-m", "pkg.train")),
        (["--instrument", "matmul|softmax", "train.py", "1"], ("train.py", "1")),
        (["--instrument=mat", "train.py", "1"], ("train.py", "1")),
        (["--instrument", "python", "train.py"], ("python", "train.py")),
        (["--instrument", "train.py"], ("train.py",)),
        (["pytest", "-m", "slow"], ("pytest", "-m", "slow")),
        ([], ()),
    ],
)
def test_everything_from_the_program_on_belongs_to_it(arguments: list[str], target: tuple[str, ...]) -> None:
    context = run.make_context("run", arguments, resilient_parsing=False)
    assert context.params["target"] == target


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["train.py"], None),
        (["--instrument", "train.py"], "."),
        (["--instrument", "mat", "train.py"], "mat"),
        (["--instrument", "--json", "train.py"], "."),
    ],
)
def test_clocks_go_into_all_kernels_or_into_those_that_are_named(arguments: list[str], pattern: str | None) -> None:
    assert run.make_context("run", arguments, resilient_parsing=False).params["instrument"] == pattern


def test_defaults_in_the_help_are_those_of_a_recording() -> None:
    said = {
        option.name: re.search(r"\[(\S+)\]$", option.help or "") for option in run.params if hasattr(option, "help")
    }
    defaults = {name: match[1] for name, match in said.items() if name and match}
    assert defaults == {name: str(getattr(RecordConfig(), name)) for name in defaults}
    assert len(defaults) == 16


def test_run_says_where_the_time_went_and_what_is_next(bragg_process: Bragg, script: Path) -> None:
    outcome = bragg_process("run", "--backend", "cpu", script)
    lines = outcome.stderr.splitlines()
    assert outcome.exit_code == 0
    assert outcome.stdout == ""
    assert len(lines) <= 15
    assert any("work busy.py:" in line for line in lines)
    assert lines[-1].startswith("Wrote busy.bragg (")
    assert lines[-1].endswith("Next: bragg view busy.bragg")


def test_profile_of_a_run_is_shown_by_view(bragg_process: Bragg, script: Path) -> None:
    bragg_process("run", "--backend", "cpu", "-o", "out.bragg", script)
    rows = json.loads(bragg_process("view", "out.bragg", "--json").stdout)["rows"]
    assert any(row["name"] == "work" and row["file"] == str(script) for row in rows)


def test_existing_profile_is_kept_and_the_new_one_numbered(bragg_process: Bragg, script: Path, tmp_path: Path) -> None:
    (tmp_path / "out.bragg").write_text("precious")
    assert "Wrote out-2.bragg" in bragg_process("run", "-o", "out.bragg", "--no-summary", script).stderr
    assert (tmp_path / "out.bragg").read_text() == "precious"
    assert "Wrote out.bragg" in bragg_process("run", "-o", "out.bragg", "--force", script).stderr


def test_options_of_bragg_behind_a_program_that_refuses_them_are_answered_with_the_order(
    bragg_process: Bragg, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("import sys; sys.exit(2)")
    for target in ("train.py", "-m train"):
        said = bragg_process("run", "--backend", "cpu", *target.split(), "-o", "out.bragg").stderr.splitlines()
        assert said[-1] == f"hint: -o went to {target}; options of bragg stand before it: bragg run -o … {target}"
    assert "hint: " not in bragg_process("run", "--backend", "cpu", "train.py", "--epochs", "2").stderr


def test_options_of_bragg_that_a_program_ignores_are_answered_too(tmp_path: Path) -> None:
    ignores, knows = tmp_path / "ignores.py", tmp_path / "knows.py"
    ignores.write_text("train()")
    knows.write_text("parser.add_argument('--data')")
    behind = ["--data", "trace", "--epochs=2"]
    assert late_hint(run, [str(ignores), *behind]) == (
        f"hint: --data went to {ignores}; options of bragg stand before it: bragg run --data … {ignores}"
    )
    assert late_hint(run, [str(knows), *behind]) == ""
    assert late_hint(run, ["-m", "knows", *behind]) == ""


def test_json_is_the_last_line_of_stdout(bragg_process: Bragg, script: Path) -> None:
    outcome = bragg_process("run", "--json", script, "print('of the program')")
    values = json.loads(outcome.stdout.splitlines()[-1])
    assert outcome.stdout.startswith("of the program\n")
    assert (values["view"], values["exit_code"], values["profiles"][0]["file"]) == ("run", 0, "busy.bragg")


@pytest.mark.parametrize(
    ("statement", "exit_code"), [("sys.exit(9)", 9), ("raise ValueError('mine')", 1), ("sys.exit('text')", 1)]
)
def test_exit_code_of_the_program_is_passed_on(
    bragg_process: Bragg, script: Path, statement: str, exit_code: int
) -> None:
    outcome = bragg_process("run", script, statement)
    assert outcome.exit_code == exit_code
    assert "Wrote busy.bragg" in outcome.stderr
    assert ("ValueError: mine" in outcome.stderr) == ("mine" in statement)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL])
def test_signal_of_the_program_is_passed_on(bragg_process: Bragg, script: Path, number: signal.Signals) -> None:
    dies = f"{FLUSHED}work(); wait_until_flushed('work', 'host_time'); import os; os.kill(os.getpid(), {int(number)})"
    outcome = bragg_process("run", "--flush-interval", "20", script, dies)
    assert outcome.exit_code == -number
    assert "Wrote busy.bragg" in outcome.stderr


def test_program_that_does_nothing_measurable_ends_as_it_does_alone(bragg_process: Bragg) -> None:
    outcome = bragg_process("run", "--", "true")
    assert outcome.exit_code == 0
    assert (
        outcome.stderr
        == "note: nothing was recorded: no process of the program used a GPU, and none was Python, other than with -I, "
        "-E or -S\n"
    )


def test_empty_recording_is_a_failure_where_samples_are_required(bragg_process: Bragg) -> None:
    outcome = bragg_process("run", "--require-samples", "--", "true")
    assert outcome.exit_code == 7
    assert outcome.stderr.startswith("error: nothing was recorded: no process of the program used a GPU")


def test_empty_recording_is_an_object_of_json_too(bragg_process: Bragg) -> None:
    values = json.loads(bragg_process("run", "--json", "--", "true").stdout)
    assert (values["view"], values["exit_code"], values["profiles"]) == ("run", 0, [])
    assert values["notes"][-1].startswith("nothing was recorded")


def test_profile_that_cannot_be_written_leaves_the_exit_code_alone(bragg_process: Bragg, script: Path) -> None:
    outcome = bragg_process("run", "-o", "gone/out.bragg", script, "import shutil; shutil.rmtree('gone')")
    assert outcome.exit_code == 0
    assert "nothing was recorded" in outcome.stderr


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit(3)", "the program failed with exit code 3 before it launched a kernel"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL ended the program before anything was written\nhint: A killed"),
    ],
)
def test_empty_recording_says_how_the_program_ended(bragg_process: Bragg, program: str, reason: str) -> None:
    outcome = bragg_process("run", "--sample-interval", "0", "--", sys.executable, "-c", program)
    assert f"note: nothing was recorded: {reason}" in outcome.stderr


def test_exit_code_of_a_failed_program_wins_over_an_empty_recording(bragg_process: Bragg) -> None:
    outcome = bragg_process("run", "--", "false")
    assert outcome.exit_code == 1
    assert "note: nothing was recorded" in outcome.stderr
    assert bragg_process("run", "--require-samples", "--", "false").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "exit_code", "error"),
    [
        ([], 2, "error: nothing to run"),
        (["nowhere.py"], 2, "error: cannot run nowhere.py: no such file or command"),
        (["--backend", "abacus", "x.py"], 2, "error: Invalid value for '--backend'"),
        (["--flush-interval", "0", "x.py"], 2, "error: the flush interval must be at least 1 ms"),
        (["-o", "%z.bragg", "x.py"], 2, "error: unknown token '%z'"),
    ],
)
def test_bad_command_line_is_said_before_anything_runs(
    bragg: Bragg, arguments: list[str], exit_code: int, error: str
) -> None:
    outcome = bragg("run", *arguments)
    assert outcome.exit_code == exit_code
    assert outcome.stderr.startswith(error)


@pytest.mark.parametrize(
    ("arguments", "has_gpu", "said"),
    [
        (["--target", "gfx942"], False, "is not a GPU whose machine code bragg reads"),
        (["--target", "sm_1"], False, "unknown target 'sm_1'"),
        (["--target", "sm_90", "--interpret", "off"], False, "--interpret off leaves it out"),
        (["--target", "sm_90"], True, "this machine has a GPU"),
    ],
)
def test_a_target_is_for_kernels_that_are_interpreted(
    bragg: Bragg, monkeypatch: pytest.MonkeyPatch, script: Path, arguments: list[str], has_gpu: bool, said: str
) -> None:
    monkeypatch.setattr("bragg.debug.host.driver.has_gpu", lambda: has_gpu)
    outcome = bragg("run", *arguments, script)
    assert (outcome.exit_code, said in outcome.stderr) == (2, True)


def test_unwritable_place_is_said_before_the_program_starts(bragg: Bragg, script: Path) -> None:
    outcome = bragg("run", "-o", script / "out.bragg", script, "open('started', 'w')")
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("error: cannot write to")
    assert not Path("started").exists()


def test_what_only_a_gpu_has_is_said_to_be_missing_where_none_is_recorded(bragg_process: Bragg, script: Path) -> None:
    outcome = bragg_process("run", "--backend", "cpu", "--no-summary", "--sample", "--gpu-api", script)
    note = "note: no NVIDIA GPU is recorded here: no instruction samples and no calls of the GPU's API"
    assert (outcome.exit_code, note in outcome.stderr.splitlines()) == (0, True)


def test_child_processes_have_profiles_of_their_own(bragg_process: Bragg, script: Path, tmp_path: Path) -> None:
    parent = tmp_path / "parent.py"
    parent.write_text(f"{BUSY}\nimport subprocess\nsubprocess.run([sys.executable, {str(script)!r}])\n")
    outcome = bragg_process("run", "-v", "--no-summary", parent)
    assert outcome.exit_code == 0
    assert outcome.stderr.splitlines()[-1].startswith("Wrote parent.bragg (")
    (child,) = tmp_path.glob("parent-p*.bragg")
    assert f" and 1 more profile: {child.name}. Next: " in outcome.stderr.splitlines()[-1]
    commands = [formats.load(path).meta["command"][-1] for path in tmp_path.glob("parent*.bragg")]
    assert sorted(commands) == sorted([str(parent), str(script)])
