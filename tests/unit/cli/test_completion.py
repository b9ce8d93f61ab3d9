from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bragg.cli.main import main
from tests.support.jobs import job_of
from tests.support.recordings import SAMPLE

Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Offered:
    """What bash offers for the last word of a command line."""

    def offered(line: str) -> list[str]:
        monkeypatch.setenv("_BRAGG_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        with pytest.raises(SystemExit, match="0"):
            main([])
        written = capsys.readouterr()
        assert written.err == ""
        return written.out.split()

    return offered


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("bragg vi", ["plain,view"]),
        ("bragg view train.bragg -m gpu_t", ["plain,gpu_time"]),
        ("bragg view -m tim", ["plain,time"]),
        ("bragg view -m gpu_time/o", ["plain,gpu_time/own"]),
        ("bragg view train.bragg --metric count,gpu_c", ["plain,count,gpu_count"]),
        ("bragg diff train.bragg other.bragg -m gpu_t", ["plain,gpu_time"]),
        ("bragg diff --gate k", ["plain,kernel:"]),
        ("bragg export -f sp", ["plain,speedscope"]),
        ("bragg export -f capt", []),
        ("bragg source train.bragg mat", ["plain,matmul"]),
        ("bragg check --only data", ["plain,data-race"]),
        ("bragg check -f s", ["plain,sarif"]),
        ("bragg analyze --rule unaligned", ["plain,unaligned-matmul"]),
        ("bragg run --counters te", ["plain,tensor", "plain,tensor_active"]),
        ("bragg run --counters dram,l2_h", ["plain,dram,l2_hit_rate"]),
        ("bragg view tra", ["file,tra"]),
        ("bragg run tra", ["file,tra"]),
        ("bragg run train.py da", ["file,da"]),
        ("bragg run --data tr", ["plain,tree", "plain,trace"]),
        ("bragg view missing.bragg -m g", []),
    ],
)
@pytest.mark.usefixtures("profile_file")
def test_values_are_completed(offered: Offered, line: str, words: list[str]) -> None:
    assert offered(line) == words


def test_nothing_is_offered_where_no_profile_can_be_read(offered: Offered, tmp_path: Path) -> None:
    assert offered("bragg view -m g") == []
    (tmp_path / "broken.bragg").write_bytes(b"PK")
    assert offered("bragg view broken.bragg -m g") == []


@pytest.mark.parametrize(
    ("shell", "words", "last", "offer"),
    [
        ("zsh", "bragg diff --gate k", "3", ["plain", "kernel:", "_"]),
        ("zsh", "bragg run tra", "2", ["file", "tra", "_"]),
        ("fish", "bragg view train.bragg -m count,gpu_c", "count,gpu_c", ["plain,count,gpu_count"]),
        ("fish", "bragg run tra", "tra", ["file,tra"]),
    ],
)
@pytest.mark.usefixtures("profile_file")
def test_zsh_and_fish_are_offered_the_same(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shell: str,
    words: str,
    last: str,
    offer: list[str],
) -> None:
    monkeypatch.setenv("_BRAGG_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", last)
    with pytest.raises(SystemExit, match="0"):
        main([])
    assert capsys.readouterr().out.splitlines() == offer


def test_script_for_fish_splits_the_type_from_the_value_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_BRAGG_COMPLETE", "fish_source")
    with pytest.raises(SystemExit, match="0"):
        main([])
    assert 'string split --max 1 "," $completion' in capsys.readouterr().out


def test_kernels_with_code_are_offered_where_there_are_any(offered: Offered) -> None:
    assert offered(f"bragg source {SAMPLE} ") == [
        "plain,squared_relu_kernel<BLOCK=1024",
        "w4",
        "s3",
        "f32>",
        "plain,train_gpt2.py",
    ]


def test_metrics_of_a_job_are_those_of_a_rank(offered: Offered, tmp_path: Path) -> None:
    job_of(tmp_path / "train.job", "root\n  k 1us", "root\n  k 2us")
    assert offered(f"bragg view {tmp_path}/train.job -m gpu_t") == ["plain,gpu_time"]
