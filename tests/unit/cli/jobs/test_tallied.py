from __future__ import annotations

import json
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.jobs.tallied import RunTally, tally_options
from bragg.cli.run_report import RunReport
from bragg.errors import UsageError
from bragg.record import RecordConfig
from bragg.views.text.style import PLAIN
from tests.support.jobs import job_of
from tests.support.profiles import profile_from_text
from tests.unit.cli.conftest import Bragg

RANK = """
import bragg, sys
for _ in range(5):
    with bragg.scope("step"): pass
"""


def report_of(directory: Path, *texts: str) -> RunReport:
    written = []
    for number, text in enumerate(texts):
        path = directory / f"{number}.bragg"
        formats.export(profile_from_text(text), "bragg", path)
        written.append((path, formats.load(path)))
    return RunReport(0, 1.5, written, 0, [])


def test_all_processes_of_a_run_are_counted_together(tmp_path: Path) -> None:
    lines = RunTally(report_of(tmp_path, "root\n  k 10us", "root\n  k 30us")).lines(
        PLAIN, summary=True, every_process=False
    )
    assert lines[:5] == [
        "backend cpu | 1 host | 2 processes",
        "",
        "device",
        "  total    share  calls  average  name",
        "40.0 us  100.0 %      2  20.0 us  k",
    ]
    assert lines[-1].endswith(f"Next: bragg tally {tmp_path / '1.bragg'}")


def test_ranks_of_a_job_are_compared(tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", "root\n  k 10us", "root\n  k 30us")
    ranks = sorted(job.glob("rank*.bragg"))
    report = RunReport(0, 1.0, [(path, formats.load(path)) for path in ranks], 0, [], job=job)
    tally = RunTally(report)
    lines = tally.lines(PLAIN, summary=True, every_process=False)
    assert "40.0 us  100.0 %      2  20.0 us     50.0 %            1  k" in lines
    assert lines[-1].startswith(f"Wrote {job}/ (2 ranks, ")
    assert lines[-1].endswith(f"). Next: bragg tally {job}")
    assert "above" not in lines[-1]
    (row,) = tally.to_json()["tally"]["sections"][0]["rows"]
    assert (row["calls"], row["worst_rank"]) == (2, 1)


def test_nothing_to_count_is_told(tmp_path: Path) -> None:
    tally = RunTally(report_of(tmp_path, "root\n  a.py:1@f host=1ms"))
    assert tally.lines(PLAIN, summary=True, every_process=False)[0].startswith("nothing to count")
    assert not tally.lines(PLAIN, summary=False, every_process=False)[0].startswith("nothing to count")


def test_options_of_a_tally_are_those_of_sums_and_what_the_user_gave_wins() -> None:
    given = {"context": None, "data": None, "gpu_api": "sync", "sample_interval_us": None, "shapes": True}
    config = RecordConfig(**tally_options(given))
    assert (config.context, config.data, config.gpu_api, config.sample_interval_us) == ("shadow", "tree", "sync", 0)
    assert config.shapes
    assert not config.kernel_code


@pytest.mark.parametrize(
    "more", [["--data", "trace"], ["--counters"], ["--sample"], ["--rotate", "60s"], ["--repeat", "2"]]
)
def test_what_needs_more_than_sums_is_refused(bragg: Bragg, tmp_path: Path, more: list[str]) -> None:
    outcome = bragg("run", "--tally", *more, "program.py")
    assert outcome.exit_code == 2
    assert (
        f"--tally keeps sums alone, and {' '.join(more[: 1 + (more[0] == '--data')])} asks for more" in outcome.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_what_needs_more_than_sums_is_refused_of_the_options_themselves() -> None:
    with pytest.raises(UsageError, match="--instrument"):
        tally_options({"instrument": "."})


def test_run_ends_with_the_table_and_leaves_a_small_profile(bragg_process: Bragg, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANK)
    outcome = bragg_process("run", "--backend", "cpu", "--tally", "train.py")
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    lines = outcome.stderr.splitlines()
    assert lines[lines.index("scopes") + 2].endswith("  step")
    assert lines[-1].startswith("Wrote train.bragg (")
    profile = formats.load(tmp_path / "train.bragg")
    assert not len(profile.slices)
    assert profile.tree.frames.name.count("step") == 1
    shown = bragg_process("tally", "train.bragg").stdout.splitlines()
    assert shown[1:] == lines[: len(shown) - 1]


def test_json_has_the_run_and_the_tally(bragg_process: Bragg, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANK)
    values = json.loads(bragg_process("run", "--backend", "cpu", "--tally", "--json", "train.py").stdout)
    (section,) = values["tally"]["sections"]
    assert (values["view"], section["title"], section["rows"][0]["calls"]) == ("run", "scopes", 5)


def test_program_without_anything_to_count_keeps_its_exit_code(bragg_process: Bragg, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(3)")
    outcome = bragg_process("run", "--backend", "cpu", "--tally", "train.py")
    assert outcome.exit_code == 3
    assert "nothing was recorded" in outcome.stderr
