from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.analyze.kernel_choice import every_kernel
from bragg.analyze.program_lines import program_file
from bragg.analyze.source_lines import annotate_stages
from bragg.code.source_map import Stage, source_name
from bragg.model import Profile
from bragg.views.web.code import code_of
from bragg.views.web.report_payload import report_payload
from tests.support.recordings import SAMPLE
from tests.support.sampled_kernels import FILE, KEY, sampled_profile


def code(profile: Profile) -> list[dict[str, Any]]:
    return code_of(annotate_stages(profile, kernel) for kernel in every_kernel(profile))


def pane(kernel: dict[str, Any], stage: str) -> dict[str, Any]:
    (found,) = (pane for pane in kernel["panes"] if pane["stage"] == stage)
    return found


def sources(kernel: dict[str, Any], stage: str) -> list[list[int]]:
    """Numbers of the Python lines that each line comes from."""
    numbers = pane(kernel, "python")["numbers"]
    return [[numbers[row] for row in kernel["places"][place]["source"]] for place in pane(kernel, stage)["place"]]


def test_each_instruction_names_its_line_and_the_lines_that_called_it() -> None:
    kernel = code(sampled_profile())[0]
    assert (kernel["name"], kernel["key"]) == ("softmax<BLOCK=1024 w4 s3>", KEY)
    assert pane(kernel, "sass")["numbers"] == [0x00, 0x10, 0x20]
    assert pane(kernel, "sass")["ptx"] == [2, 4, 6]
    assert sources(kernel, "sass") == [[8], [3, 9], [10]]


def test_lines_of_one_place_share_a_key() -> None:
    profile = sampled_profile()
    profile.sources[source_name(KEY, Stage.TTIR)] = f'tt.load loc("{FILE}":8:7)\ntt.store loc("{FILE}":10:5)\n'
    kernel = code(profile)[0]
    load, _, store = (set(kernel["places"][place]["keys"]) for place in pane(kernel, "sass")["place"])
    ttir = [set(kernel["places"][place]["keys"]) for place in pane(kernel, "ttir")["place"]]
    assert [bool(load & keys) for keys in ttir] == [True, False]
    assert [bool(store & keys) for keys in ttir] == [False, True]


def test_samples_stand_at_their_lines_with_their_reasons() -> None:
    kernel = code(sampled_profile())[0]
    python = pane(kernel, "python")
    assert kernel["samples"] == 100
    assert {python["numbers"][row]: count for row, count, *_ in python["samples"]} == {3: 30, 8: 60, 9: 30, 10: 10}
    names = [name for name, _, _ in kernel["reasons"]]
    by_offset = {
        row * 16: {names[reason]: count for reason, count in reasons}
        for row, _, reasons, *_ in pane(kernel, "sass")["samples"]
    }
    assert by_offset[0x10] == {"selected": 10, "long_scoreboard": 5, "wait": 15}


def test_the_source_is_parted_into_functions() -> None:
    python = pane(code(sampled_profile())[0], "python")
    assert python["sections"] == [[0, f"softmax  {FILE}", FILE], [5, f"scale  {FILE}", FILE]]


def test_without_samples_the_mapping_is_there() -> None:
    kernel = code(sampled_profile(samples=False))[0]
    assert sources(kernel, "sass") == [[8], [3, 9], [10]]
    assert (kernel["samples"], kernel["reasons"], pane(kernel, "sass")["samples"]) == (0, [], [])


def test_kernels_without_any_code_are_left_out_and_the_rest_is_json() -> None:
    assert code(sampled_profile(code=False, samples=False)) == []
    assert [kernel["name"] for kernel in json.loads(json.dumps(code(sampled_profile())))] == [
        "softmax<BLOCK=1024 w4 s3>",
        "softmax<BLOCK=64 w4 s3>",
    ]


def test_a_line_says_which_line_it_waits_for() -> None:
    profile = formats.load(SAMPLE)
    kernel = next(each for each in code(profile) if each["name"].startswith("squared_relu"))
    python = pane(kernel, "python")
    waits = {python["numbers"][line[0]]: line[3] for line in python["samples"] if len(line) > 3}
    use, load = max(waits.items(), key=lambda item: item[1])
    assert "tl.maximum" in python["lines"][python["numbers"].index(use)]
    assert "tl.load" in python["lines"][python["numbers"].index(load)]


def test_files_of_the_program_have_the_times_of_their_lines() -> None:
    path = Path(__file__).parents[3] / "golden/recordings/texts/h100-kron_slow.bragg"
    profile = formats.load(path)
    data = gzip.decompress(report_payload(profile, "rows"))
    header = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
    (program,) = (each for each in header["code"] if each["times"])
    told = program_file(profile, "kron_slow.py")
    assert told is not None
    assert (program["name"], dict(program["times"])) == (told.file, told.totals_ns)
    (shown,) = program["panes"]
    assert shown["lines"] == [line.text for line in told.lines]
    names = [name for name, _ in program["times"]]
    assert names == ["host_time", "gpu_time"]
    times = {shown["numbers"][row]: {names[time]: ns for time, ns in own} for row, _, own in shown["samples"]}
    assert times == {line.number: line.times_ns for line in told.lines if line.times_ns}
    assert times[16]["gpu_time"] == pytest.approx(44.8e6, rel=0.001)
