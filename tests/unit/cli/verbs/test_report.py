from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.straggler_jobs import JobPlan, write_job_files
from bragg import formats
from bragg.cli.main import main
from bragg.views.web.report_payload import report_payload
from tests.support.profiles import profile_from_text


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "run.bragg"
    formats.export(profile_from_text("root\n  matmul 12us x3"), "bragg", path)
    return path


def test_page_is_named_after_the_profile_and_announced(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(profile)]) == 0
    page = profile.with_suffix(".html")
    assert page.read_text().startswith("<!doctype html>")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Wrote {page} (")
    assert "Next: open it in any browser" in err


def test_existing_page_is_kept_unless_forced(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = profile.parent / "page.html"
    target.write_text("mine")
    assert main(["report", str(profile), "-o", str(target)]) == 2
    assert target.read_text() == "mine"
    assert "--force" in capsys.readouterr().err
    assert main(["report", str(profile), "-o", str(target), "--force"]) == 0
    assert target.read_text() != "mine"


def test_json_says_where_the_page_is(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(profile), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    page = profile.with_suffix(".html")
    assert found == {
        "schema": "bragg/1",
        "view": "report",
        "file": str(profile),
        "page": str(page),
        "size_bytes": page.stat().st_size,
    }


def test_summary_of_the_page_says_what_the_end_of_a_run_says_of_steps_and_autotuning() -> None:
    text = "root\n  [compile] jit_f\n    autotune\n      gemm.1 750us\n  jit_f\n    gemm_1 250us"
    times = {"count": 2, "total_ns": 4_000_000, "in_steps_ns": 4_000_000, "buckets": {}}
    forward = {**times, "total_ns": 1_000_000, "in_steps_ns": 1_000_000}
    profile = replace(profile_from_text(text), meta={"regions": {"step": times, "forward": forward}})
    page = gzip.decompress(report_payload(profile, "run"))
    assert b"2 steps of 2.00 ms: forward 25.0 %, other 75.0 %" in page
    assert b"75 % of the run's GPU time is XLA's autotuning" in page


def test_title_stands_above_the_page(profile: Path) -> None:
    assert main(["report", str(profile), "--title", "before <the> change"]) == 0
    assert "<title>before &lt;the&gt; change</title>" in profile.with_suffix(".html").read_text()


def test_unwritable_place_and_missing_file_are_bad_files(profile: Path, tmp_path: Path) -> None:
    assert main(["report", str(profile), "-o", str(tmp_path / "no" / "page.html")]) == 6
    assert main(["report", str(tmp_path / "missing.bragg")]) == 6


def test_the_page_of_a_job_has_its_ranks_compared_and_is_named_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "train.job"
    write_job_files(JobPlan(n_ranks=2, n_steps=4, n_layers=2), job)
    assert main(["report", str(job)]) == 0
    page = tmp_path / "train.html"
    assert f"Wrote {page} (" in (err := capsys.readouterr().err)
    assert err.rstrip().endswith(f"bragg view {job}")
    packed = re.findall('class="profile">([^<]*)<', page.read_text())[0]
    text = gzip.decompress(base64.b64decode(packed))
    assert b'"ranks":{"sentence":"No rank holds up the others: 2 ranks over 4 steps' in text


def test_the_page_of_a_job_shows_the_rank_that_the_others_wait_for(tmp_path: Path) -> None:
    job = tmp_path / "train.job"
    write_job_files(JobPlan(n_ranks=3, n_steps=12, n_layers=2, gpu=lambda rank, step: 1.6 if rank == 1 else 1.0), job)
    assert main(["report", str(job)]) == 0
    packed = re.findall('class="profile">([^<]*)<', (tmp_path / "train.html").read_text())[0]
    text = gzip.decompress(base64.b64decode(packed))
    assert b'"title":"train.job, rank00001.bragg"' in text
    assert b'"shown":1' in text
