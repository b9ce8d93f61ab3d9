from __future__ import annotations

from pathlib import Path

import pytest

from bragg.model import Profile
from bragg.record import RecordConfig
from bragg.record.launcher.run_profiles import ProfileWriter
from tests.support.profiles import profile_from_text


def finisher(capture: Path, output: Path, /, *, exit_code: int | None = None) -> Profile:
    output.write_text(capture.name)
    return profile_from_text("root 1us")


def written(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir() if path.suffix == ".bragg"}


@pytest.mark.parametrize("keep", [1, 2, None])
def test_phases_have_a_file_each_and_the_latest_are_kept_of_each_process(tmp_path: Path, keep: int | None) -> None:
    config = RecordConfig(output=f"{tmp_path}/%s", rotate_s=1, rotate_keep=keep)
    writer = ProfileWriter(config, "train", finisher)
    for name in ("5.part", "6.part", "5.part_1.part", "6.part_1.part", "5.part_3.part"):
        (tmp_path / name).touch()
        writer.write(tmp_path / name)
    main = {0: "5.part", 1: "5.part_1.part", 3: "5.part_3.part"}
    other = {0: "6.part", 1: "6.part_1.part"}
    assert written(tmp_path) == {
        f"train{process}.part_{phase}.bragg": phases[phase]
        for process, phases in (("", main), ("-p6", other))
        for phase in sorted(phases)[-(keep or 9) :]
    }
    assert [path.name for path, _ in writer.latest.values()] == ["train.part_3.bragg", "train-p6.part_1.bragg"]
    assert {path.name for path in writer.earlier} == set(written(tmp_path)) - {
        "train.part_3.bragg",
        "train-p6.part_1.bragg",
    }
