from __future__ import annotations

import json
from pathlib import Path

from bragg import formats
from tests.support.jobs import job_of
from tests.support.profiles import profile_from_text
from tests.unit.cli.conftest import Bragg


def test_job_shows_imbalance_and_worst_rank(bragg: Bragg, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", "root\n  k 10us", "root\n  k 30us")
    assert bragg("tally", job).stdout.splitlines() == [
        str(job),
        "backend cpu | 1 host | 2 processes",
        "",
        "device",
        "  total    share  calls  average  imbalance  rank of max  name",
        "40.0 us  100.0 %      2  20.0 us     50.0 %            1  k",
        "",
        "calls of the GPU's API were not recorded: bragg run --gpu-api",
    ]


def test_json_has_every_row_and_null_for_what_is_not_known(bragg: Bragg, tmp_path: Path) -> None:
    formats.export(
        profile_from_text("root\n" + "".join(f"  k{n} 10us\n" for n in range(30))), "bragg", tmp_path / "a.bragg"
    )
    content = json.loads(bragg("tally", tmp_path / "a.bragg", "--json").stdout)
    (section,) = content["sections"]
    assert (content["view"], section["title"], len(section["rows"])) == ("tally", "device", 30)
    assert {name for name, value in section["rows"][0].items() if value is None} == {
        *("least", "most", "p50", "p95", "p99", "errors", "imbalance", "worst_rank", "bus_bytes_per_s"),
    }
    text = bragg("tally", tmp_path / "a.bragg", "--lines", "7").stdout
    assert "23 more rows; --lines 0 shows all" in text


def test_hostile_names_are_made_printable(bragg: Bragg, tmp_path: Path) -> None:
    formats.export(profile_from_text("root\n  k\x1b[31m 10us"), "bragg", tmp_path / "a.bragg")
    assert "\x1b" not in bragg("tally", tmp_path / "a.bragg").stdout


def test_profile_with_nothing_to_count_is_told(bragg: Bragg, tmp_path: Path) -> None:
    formats.export(profile_from_text("root\n  a.py:1@f host=1ms"), "bragg", tmp_path / "a.bragg")
    assert bragg("tally", tmp_path / "a.bragg").exit_code == 7
