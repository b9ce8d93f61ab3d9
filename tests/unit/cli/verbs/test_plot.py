from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bragg import formats
from tests.support.work import H200, working_profile
from tests.unit.cli.conftest import Bragg


@pytest.fixture
def working_file(tmp_path: Path) -> Path:
    """A profile of a kernel at half its roof, and of one without flops."""
    profile = working_profile(
        "root\n  forward\n    matmul 2ms @0\n  copy 1ms @0",
        [H200],
        flops16={"matmul": 988.24e9},
        bytes={"matmul": 1e6, "copy": 1e9},
    )
    path = tmp_path / "work.bragg"
    formats.export(replace(profile, meta={**profile.meta, "backend": "cuda"}), "bragg", path)
    return path


def test_roofline_is_a_picture_beside_the_profile_and_a_table(bragg: Bragg, working_file: Path) -> None:
    outcome = bragg("plot", "roofline", working_file)
    picture = working_file.with_suffix(".roofline.svg")
    assert (outcome.exit_code, outcome.stderr) == (0, f"Wrote {picture}. Next: open it in any browser\n")
    assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert [line.split()[-2:] for line in outcome.stdout.splitlines()[3:]] == [["compute", "matmul"], ["(no", "flops)"]]
    assert "50.0 %" in outcome.stdout


def test_json_has_roofs_and_points(bragg: Bragg, working_file: Path, tmp_path: Path) -> None:
    values = json.loads(bragg("plot", "roofline", working_file, "-o", tmp_path / "r.svg", "--json").stdout)
    assert (values["schema"], values["view"], values["picture"]) == ("bragg/1", "roofline", str(tmp_path / "r.svg"))
    assert values["roofs"][0]["device"] == "NVIDIA H200"
    matmul = values["points"][0]
    assert (matmul["bound"], matmul["util"]) == ("compute", pytest.approx(0.5, rel=1e-3))


def test_only_what_matches_is_drawn(bragg: Bragg, working_file: Path) -> None:
    outcome = bragg("plot", "roofline", working_file, "--include", "forward")
    assert "matmul" in outcome.stdout
    assert "copy" not in outcome.stdout


def test_expressions_that_match_nothing_or_are_none_are_said(bragg: Bragg, working_file: Path) -> None:
    outcome = bragg("plot", "roofline", working_file, "--include", "nowhere")
    assert (outcome.exit_code, outcome.stderr.splitlines()[0]) == (7, "error: nothing matches --include 'nowhere'")
    assert bragg("plot", "roofline", working_file, "--exclude", "[").exit_code == 2


def test_an_existing_picture_is_overwritten_only_by_force(bragg: Bragg, working_file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "mine.svg"
    picture.write_text("precious")
    assert bragg("plot", "roofline", working_file, "-o", picture).exit_code == 2
    assert picture.read_text() == "precious"
    assert bragg("plot", "roofline", working_file, "-o", picture, "--force").exit_code == 0
    assert picture.read_text().startswith("<svg")


def test_a_profile_without_flops_says_what_to_do(bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg("plot", "roofline", profile_file)
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("error: nothing in this profile has flops or bytes\nhint: bragg run --counters")
    assert not profile_file.with_suffix(".roofline.svg").exists()


def test_an_unwritable_place_is_said(bragg: Bragg, working_file: Path) -> None:
    outcome = bragg("plot", "roofline", working_file, "-o", "missing/r.svg")
    assert outcome.exit_code == 6
    assert outcome.stderr.startswith("error: cannot write missing/r.svg")
