from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import Bragg


def test_info_counts_what_the_profile_holds(bragg: Bragg, profile_file: Path) -> None:
    values = json.loads(bragg("info", profile_file, "--json").stdout)
    assert values["rows"]["call paths"] == 7
    assert values["metrics"]["gpu_time"] == {"unit": "ns", "kind": "inclusive"}
    assert values["size_bytes"] == profile_file.stat().st_size
    assert sum(values["part_bytes"].values()) < values["size_bytes"]
    assert values["meta"]["command"] == ["/usr/bin/python3", "train.py"]


def test_info_says_how_it_was_recorded(bragg: Bragg, profile_file: Path) -> None:
    lines = bragg("info", profile_file).stdout.splitlines()
    assert lines[0] == f"{profile_file}: python3 train.py"
    assert '  command  ["/usr/bin/python3", "train.py"]' in lines
    assert "  gpu_time   ns, inclusive" in lines
