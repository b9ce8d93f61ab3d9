from __future__ import annotations

import re
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.run_sets import set_name, two_sets
from bragg.errors import UsageError
from tests.support.profiles import profile_from_text
from tests.unit.cli.conftest import Bragg


def paths(*names: str) -> list[Path]:
    return [Path(name) for name in names]


def test_files_that_are_numbered_are_two_sets() -> None:
    words = paths("main-1.bragg", "main-2.bragg", "new_1.bragg", "new_2.bragg", "new_10.bragg")
    before, after = two_sets(words)
    assert (before, after) == (words[:2], words[2:])
    assert (set_name(before), set_name(after[:1])) == ("main (2 runs)", "new_1.bragg")


def test_equal_names_in_two_directories_are_two_sets() -> None:
    words = paths("old/train-1.bragg", "old/train-2.bragg", "new/train-1.bragg")
    assert two_sets(words) == (words[:2], words[2:])


def test_two_words_are_a_file_a_directory_or_a_pattern_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("old/a-1.bragg", "old/a-2.bragg", "b-1.bragg", "b-2.bragg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert two_sets(paths("old", "b-*.bragg")) == (
        paths("old/a-1.bragg", "old/a-2.bragg"),
        paths("b-1.bragg", "b-2.bragg"),
    )
    assert two_sets(paths("b-1.bragg", "b-2.bragg")) == (paths("b-1.bragg"), paths("b-2.bragg"))
    assert two_sets(paths("old/a", "b.bragg")) == (
        paths("old/a-1.bragg", "old/a-2.bragg"),
        paths("b-1.bragg", "b-2.bragg"),
    )
    assert two_sets(paths("b", "c"))[1] == paths("c")
    assert two_sets([tmp_path / "b-?.bragg", Path("old")])[0] == [tmp_path / "b-1.bragg", tmp_path / "b-2.bragg"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["a-1", "a-2", "a-3"], "and a (3 runs) is one"),
        (["a-1", "b-1", "c-1"], "and a-1, b-1, c-1 are 3"),
        (["a-1"], "and a-1 is one"),
        ([], "and none is named"),
        (["empty-*", "b"], "empty-"),
    ],
)
def test_what_is_not_two_sets_is_an_error_that_says_how(words: list[str], what: str) -> None:
    with pytest.raises(UsageError, match=re.escape(what)) as error:
        two_sets(paths(*words))
    assert "two patterns in quotes" in error.value.hint


def test_a_set_is_compared_and_judged_on_the_command_line(bragg: Bragg) -> None:
    for number, (before_us, after_us) in enumerate(((100, 110), (101, 111), (99, 109)), 1):
        for name, time_us in (("old", before_us), ("new", after_us)):
            formats.export(profile_from_text(f"root\n  k {time_us}us"), "bragg", Path(f"{name}-{number}.bragg"))
    files = [f"{name}-{number}.bragg" for name in ("old", "new") for number in (1, 2, 3)]
    outcome = bragg("diff", *files, "--gate", "total", "--gate", "kernel:k", "--fail-over", "2%")
    assert outcome.exit_code == 5
    assert outcome.stdout.splitlines()[0] == (
        "gpu_time: 100 us before, 110 us after: +10.0 us (+10.0 %), 99 % interval +6.9 % to +13.1 %; 3 runs each"
    )
    assert outcome.stderr.splitlines()[0].startswith("exceeded: kernel:k: gpu_time 100 us before")
    assert outcome.stderr.splitlines()[1].startswith("error: total is over the limit of 2 %: gpu_time 100 us before")
    assert bragg("diff", *files, "--fail-over", "15%").exit_code == 0
    assert bragg("diff", *files, "--gate", "kernel:q").exit_code == 2
    assert bragg("diff", *files, "--gate", "kernel").stderr.startswith("error: --gate: 'kernel' is nothing that can be")


def test_one_run_each_says_that_its_noise_is_assumed(bragg: Bragg) -> None:
    for name in ("a", "b"):
        formats.export(profile_from_text("root\n  k 100us"), "bragg", Path(f"{name}.bragg"))
    outcome = bragg("diff", "a.bragg", "b.bragg", "--gate", "total")
    assert outcome.exit_code == 0
    assert outcome.stderr.splitlines()[1].startswith("note: one run each does not tell how much runs differ by chance")
