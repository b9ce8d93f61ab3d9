"""Strings of files that would act on a terminal or a page: nowhere does one arrive as it stands in the file."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.model import Finding, Profile, Severity, TrackTable
from bragg.views.text.style import Style, without_control
from tests.support.whole_profiles import whole_profile
from tests.unit.cli.conftest import Bragg

# Sets the title, clears the screen, turns the direction of writing, paints, ends a line.
ATTACK = "\x1b]0;owned\x07\x1b[2J\u202e\x1b[31mred\x9b1m\r"
ATTACKERS = re.compile("\x1b\\]|\x1b\\[2J|\u202e|\x07|\x9b|\r")
META = {
    "command": ["python3", ATTACK],
    "host": ATTACK,
    "backend": ATTACK,
    "platform": ATTACK,
    "python": ATTACK,
    "bragg": ATTACK,
    "pid": ATTACK,
    "rank": ATTACK,
    "started_ns": 1,
    "stopped_ns": 10**9,
    "versions": {ATTACK: ATTACK, "torch": ATTACK},
    "cuda": {"state": "failed", "reason": ATTACK},
    "sampling": {"reason": ATTACK, "devices": {ATTACK: {"reason": ATTACK, "restarts": 1, "period": ATTACK}}},
    "kernel_code": {ATTACK: ATTACK},
    "capture": {"write_error": ATTACK, "damaged_chunks": 1},
    "text_metrics": [ATTACK],
    "regions": {ATTACK: {"name": ATTACK}},
    ATTACK: ATTACK,
}


@pytest.fixture(params=["bragg", "foreign"])
def hostile_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    profile = whole_profile(kernel=f"softmax{ATTACK}")
    frames, tracks = profile.tree.frames, profile.tracks
    attacked = frames.replace(
        name=[ATTACK + name for name in frames.name], file=[ATTACK + file for file in frames.file]
    )
    meta = {**profile.meta, **META, **({"recorder": ATTACK} if request.param == "foreign" else {})}
    meta["devices"] = [{**device, "name": ATTACK} for device in profile.meta["devices"]]
    names = {metric.name + ATTACK: replace(metric, name=metric.name + ATTACK) for metric in profile.metrics.values()}
    path = tmp_path / "hostile.bragg"
    formats.export(
        Profile(
            meta,
            replace(profile.tree, frames=attacked),
            {**profile.metrics, **names},
            TrackTable(
                **{**{name: getattr(tracks, name) for name in tracks.columns()}, "name": [ATTACK] * len(tracks)}
            ),
            profile.slices,
            carried=[Finding(ATTACK, Severity.WARNING, ATTACK, ATTACK)],
            sources={**profile.sources, ATTACK: ATTACK},
        ),
        "bragg",
        path,
    )
    return path


@pytest.mark.parametrize("colour", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("view", "{}"),
        ("view", "--flat", "{}"),
        ("view", "--flat", "--group-by", "kernel", "{}"),
        ("view", "--list", "{}"),
        ("view", "--json", "{}"),
        ("view", "--idle", "{}"),
        ("view", "--diff-profile", "{}", "{}"),
        ("info", "{}"),
        ("info", "--json", "{}"),
        ("diff", "{}", "{}"),
        ("source", "{}"),
        ("plot", "roofline", "{}"),
        ("report", "{}"),
        ("view", f"missing{ATTACK}.bragg"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]).replace(ATTACK, ""),
)
def test_no_string_of_a_file_acts_on_the_terminal(
    arguments: tuple[str, ...], colour: str, bragg: Bragg, hostile_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", colour)
    outcome = bragg(*(argument.replace("{}", str(hostile_file)) for argument in arguments))
    assert outcome.exit_code == (0 if "{}" in arguments else 6), outcome.stderr
    for text in (outcome.stdout, outcome.stderr):
        assert not ATTACKERS.search(text)
        assert colour or "\x1b" not in text


@pytest.mark.parametrize("verb", ["report", "plot roofline"])
def test_no_string_of_a_file_acts_on_a_page(verb: str, bragg: Bragg, hostile_file: Path, tmp_path: Path) -> None:
    target = tmp_path / ("page.html" if verb == "report" else "page.svg")
    outcome = bragg(*verb.split(), hostile_file, "-o", target)
    assert outcome.exit_code == 0, outcome.stderr
    page = target.read_text()
    assert not ATTACKERS.search(page)
    if verb == "report":
        from base64 import b64decode

        packed = gzip.decompress(b64decode(re.findall('class="profile">([^<]*)<', page)[0]))
        header = packed[4 : 4 + int.from_bytes(packed[:4], "little")].decode()
        assert "\\\\u202e" in header
        assert not re.search(r"(?<!\\)\\u(202e|001b|0007|009b)", header)


def test_output_keeps_its_own_colours_and_tabs() -> None:
    colour = Style(colour=True)
    line = f"{colour.bad('error:')}\t{colour.dim('größe 核')}"
    assert without_control(line, colour) == line
    assert without_control("a\x1b[31mb\n", Style()) == "a\\x1b[31mb\\n"
    assert without_control("a\x1b[5mb\x1b[2Jc", colour) == "a\\x1b[5mb\\x1b[2Jc"
