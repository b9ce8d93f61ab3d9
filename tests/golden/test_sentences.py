"""Every number that the first sentences say of real programs, against what their timelines say."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.answer import answer
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.report import answered
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.wall_time import Steady
from bragg.model import FrameKind, Profile, SliceTable, TrackKind
from bragg.model.ids import FrameId
from bragg.views.terminal.profile_view import ShownProfile, profile_lines
from bragg.views.terminal.story import answer_lines
from bragg.views.terminal.summary import summary_lines
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.answer_text import sentences
from bragg.views.text.labels import Labels
from bragg.views.text.style import PLAIN, Style
from bragg.views.text.variants import rows_of_frames
from tests.support.recordings import RECORDINGS, SAMPLE, busy_ns, curve, gpu_work

INSIGHTS = {
    "h100-compiled_encoder": "Torch-Compiled Region: inner external_utils.py:67 (0/0)",
    "h100-flax_nnx": "code outside of any scope",
    "h100-llama_generate": "aten::_cudnn_attention_forward",
    "h100-timm_resnet50": "aten::normal_",
    "h100-trainer_gpt2": "code outside of any scope",
}


class Recording:
    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self.profile = formats.load(path)
        parts = wall_parts(self.profile)
        assert parts is not None
        assert parts.steady is not None
        self.steady: Steady = parts.steady
        self.sentences = sentences(
            self.profile, answer(Evidence(self.profile), rows_of_frames(self.profile.tree.frames))
        )
        self.summary = summary_lines(self.profile, PLAIN)


@pytest.fixture(scope="module", params=[*RECORDINGS, SAMPLE], ids=lambda path: path.stem)
def recording(request: pytest.FixtureRequest) -> Recording:
    return Recording(request.param)


UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}


def percent(text: str) -> float:
    return float(text) / 100


def duration_ns(text: str) -> float:
    value, unit = text.split()
    return float(value) * UNITS[unit]


def steady_kernels(recording: Recording) -> dict[str, list[int]]:
    """How long each piece of work that began in the steady state took, by what views call it, the plain way."""
    profile, steady = recording.profile, recording.steady
    labels, tree = Labels(profile.tree.frames, with_device=False), profile.tree
    on_gpu = (profile.tracks.kind == TrackKind.GPU_STREAM)[profile.slices.track]
    work = profile.slices.take(on_gpu)
    found: dict[str, list[int]] = {}
    for start_ns, lasts_ns, node in zip(
        work.start_ns.tolist(), work.duration_ns.tolist(), work.node.tolist(), strict=True
    ):
        if steady.begins_ns <= start_ns < steady.ends_ns:
            found.setdefault(labels.name(FrameId(int(tree.frame[node]))), []).append(lasts_ns)
    return found


def steady_regions(recording: Recording) -> Counter[str]:
    """How long the steady state was in each recorded range, the plain way."""
    profile, steady = recording.profile, recording.steady
    frames, slices = profile.tree.frames.name, profile.slices
    ranges = slices.take((profile.tracks.kind == TrackKind.RANGES)[slices.track])
    time_ns: Counter[str] = Counter()
    for start_ns, lasts_ns, node in zip(
        ranges.start_ns.tolist(), ranges.duration_ns.tolist(), ranges.node.tolist(), strict=True
    ):
        inside_ns = min(start_ns + lasts_ns, steady.ends_ns) - max(start_ns, steady.begins_ns)
        time_ns[frames[profile.tree.frame[node]]] += max(inside_ns, 0)
    return time_ns


def n_pauses(recording: Recording) -> int:
    """Stretches of the steady state in which nothing ran on the GPU, the plain way."""
    until, ends, found = recording.steady.begins_ns, recording.steady.ends_ns, 0
    for begins, stops in gpu_work(recording.profile):
        if begins >= ends:
            break
        found += begins > until
        until = max(until, stops)
    return found + (until < ends)


def on_host(profile: Profile, steady: Steady) -> Counter[str]:
    """How long threads were in each thing of one name and in nothing inside it, the plain way."""
    time_ns: Counter[str] = Counter()
    tree = profile.tree
    for track in (profile.tracks.kind == TrackKind.HOST_THREAD).nonzero()[0].tolist():
        open_until: list[tuple[int, str]] = []
        slices = profile.slices.take(profile.slices.track == track)
        for start, lasts, node in zip(
            *(getattr(slices, name).tolist() for name in ("start_ns", "duration_ns", "node")), strict=True
        ):
            begins, ends = max(start, steady.begins_ns), min(start + lasts, steady.ends_ns)
            while open_until and open_until[-1][0] <= start:
                open_until.pop()
            launched = tree.kind[node] in (FrameKind.KERNEL, FrameKind.MEMORY)
            name = tree.frames.name[tree.frame[tree.parent[node] if launched else node]]
            if begins < ends:
                time_ns[name] += ends - begins
                if open_until:
                    time_ns[open_until[-1][1]] -= ends - begins
            open_until.append((start + lasts, name))
    return time_ns


def test_idle_time_is_that_of_the_timeline(recording: Recording) -> None:
    steady = recording.steady
    said = [re.search(r"idled .*?, ([\d.]+) % of the steady state", text) for text in recording.sentences]
    (share,) = [percent(match[1]) for match in said if match]
    idle_ns = steady.duration_ns - busy_ns(recording.profile, steady.begins_ns, steady.ends_ns)
    assert share == pytest.approx(idle_ns / steady.duration_ns, abs=0.0006)


def test_what_the_host_did_is_what_the_timeline_shows(recording: Recording) -> None:
    (said,) = [text for text in recording.sentences if text.startswith("The host was")] or [""]
    truth = on_host(recording.profile, recording.steady)
    for share, name in re.findall(r"([\d.]+) % (?:of the steady state )?in (\S+?)(?:,| and|\.$)", said):
        if name in truth:
            assert percent(share) == pytest.approx(truth[name] / recording.steady.duration_ns, abs=0.0006)
    assert bool(said) == (recording.name in {*INSIGHTS, "sample-h100"})


def test_what_the_host_did_most_stands_in_the_first_five_lines(recording: Recording) -> None:
    if recording.name not in INSIGHTS:
        return
    assert f"% of the steady state in {INSIGHTS[recording.name]}" in recording.sentences[2]
    assert recording.summary[:5][-1].endswith(INSIGHTS[recording.name]) or recording.summary[3].endswith(
        INSIGHTS[recording.name]
    )


def test_kernels_are_those_of_the_steady_state(recording: Recording) -> None:
    profile, steady = recording.profile, recording.steady
    (said,) = [text for text in recording.sentences if "of GPU time in the steady state" in text]
    whole = re.search(r"took ([\d.]+) % of ([\d.]+ \w+) of GPU time", said)
    assert whole is not None
    value, unit = whole[2].split()
    total_ns = sum(
        max(min(ends, steady.ends_ns) - max(begins, steady.begins_ns), 0) for begins, ends in gpu_work(profile)
    )
    assert float(value) * {"ms": 1e6, "s": 1e9, "us": 1e3}[unit] == pytest.approx(total_ns, rel=0.01)


def test_regions_are_those_of_the_steady_state(recording: Recording) -> None:
    said = [text for text in recording.sentences if text.startswith("A steady step: ")]
    for text in said:
        shares = {name: percent(share) for name, share in re.findall(r"(\w+) ([\d.]+) %", text)}
        assert sum(shares.values()) == pytest.approx(1, abs=0.003)
        truth = steady_regions(recording)
        for name in shares.keys() - {"other"}:
            assert shares[name] == pytest.approx(truth[name] / recording.steady.duration_ns, abs=0.001), name
    assert len(said) == (recording.name in ("h100-timm_resnet50", "h100-trainer_gpt2", "sample-h100"))


def test_pauses_are_counted_as_the_timeline_has_them(recording: Recording) -> None:
    (said,) = [match[1] for text in recording.sentences if (match := re.search(r"in ([\d,]+) pauses", text))]
    assert int(said.replace(",", "")) == n_pauses(recording)


def test_the_hottest_kernels_have_the_shares_and_the_rank_of_the_timeline(recording: Recording) -> None:
    truth = {name: sum(times) for name, times in steady_kernels(recording).items()}
    ranked, total_ns = sorted(truth, key=lambda name: -truth[name]), sum(truth.values())
    (said,) = [text for text in recording.sentences if "of GPU time in the steady state" in text]
    shares = [percent(share) for share in re.findall(r"([\d.]+) %", said)]
    assert shares == pytest.approx([truth[name] / total_ns for name in ranked[:3]], abs=0.001)
    assert said.startswith(f"{ranked[0]} took")
    assert f"; {len(ranked) - 3} others the rest." in said


def test_the_table_of_kernels_has_the_times_and_counts_of_the_timeline(recording: Recording) -> None:
    truth = steady_kernels(recording)
    total_ns = sum(map(sum, truth.values()))
    row = re.compile(r" *([\d.,]+) +([\d.]+) % +\S* +([\d,]+) +([\d.,]+) +([\d.,]+) +([\d.,]+)  (.*)")
    rows = [match.groups() for line in recording.summary if (match := row.fullmatch(line))]
    assert len(rows) == 5
    for *numbers, name in rows:
        time_ms, share, count, mean, least, most = (float(number.replace(",", "")) for number in numbers)
        times = truth[name]
        assert count == len(times)
        assert (least, most) == pytest.approx((min(times) / 1e3, max(times) / 1e3), abs=0.01)
        assert (time_ms, mean) == pytest.approx((sum(times) / 1e6, sum(times) / len(times) / 1e3), rel=0.01)
        assert share / 100 == pytest.approx(sum(times) / total_ns, abs=0.002)


def test_steps_and_parts_of_the_wall_time_add_up(recording: Recording) -> None:
    line = recording.summary[1]
    assert recording.sentences[0] == f"Of the wall time: {line}."
    parts = [duration_ns(text) for text in re.findall(r"(?:^|\| )\w[\w-]* ([\d.]+ \w+)", line)]
    ran = re.search(r"ran ([\d.]+ \w+)$", recording.summary[0])
    assert ran is not None
    assert sum(parts) == pytest.approx(duration_ns(ran[1]), rel=0.01)
    steps = re.search(r"steady ([\d.]+ \w+) \(([\d,]+) steps of ([\d.]+ \w+)", line)
    assert steps is not None
    assert duration_ns(steps[1]) == pytest.approx(int(steps[2]) * duration_ns(steps[3]), rel=0.01)
    said = re.search(r"GPU busy ([\d.]+) %", line)
    assert said is not None
    steady = recording.steady
    busy = busy_ns(recording.profile, steady.begins_ns, steady.ends_ns) / steady.duration_ns
    assert percent(said[1]) == pytest.approx(busy, abs=0.006)


# The kinds of sentences, and of lines of a summary, that the tests above compare with the timeline.
_COMPARED = (
    r"Of the wall time: .*",
    r"GPU 0 idled .* of the steady state, in [\d,]+ pauses: [\d.]+ % waiting for the host to launch\.",
    r"The host was .* of the steady state in .*",
    r".* took [\d.]+ % of [\d.]+ \w+ of GPU time in the steady state.* others the rest\.",
    r"[Aa] steady step: .*",
    r".* ran [\d.]+ \w+",
    r"start .* \| warm-up .* \| steady .* \| teardown .*",
    r" *[\d.]+ \w+ +[\d.]+ % of (?:it|gpu_time)  .*",
    r" *[\d.,]+ +[\d.]+ % .*",
)
_WITHOUT_CLAIM = ("The recording is complete", "in the steady state", "gpu_time ms ")


def test_no_other_sentence_is_said(recording: Recording) -> None:
    for text in [*recording.sentences, *recording.summary]:
        assert text.startswith(_WITHOUT_CLAIM) or any(re.fullmatch(each, text) for each in _COMPARED), text


def test_nothing_is_said_of_the_time_from_first_to_last_work(recording: Recording) -> None:
    text = "\n".join([*recording.sentences, *recording.summary])
    assert "first to" not in text
    assert "meanwhile" not in text


# Where only sums are kept, sampled frames of a loop stand for what the timeline tells of it.
HOST_WITHOUT_TIMELINE = {
    "h100-llama_generate": "aten::_cudnn_attention_forward",
    "h100-timm_resnet50": "torch: backward",
}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_without_a_timeline_imports_are_not_what_the_host_did(path: Path) -> None:
    profile = formats.load(path)
    meta = {**profile.meta, "gpu_activity": curve(profile)}
    lines = summary_lines(replace(profile, slices=SliceTable.empty(), meta=meta), PLAIN)
    host = [line for line in lines if " of host_time" in line]
    assert len(host) == 2
    assert all("of host_time without imports" in line for line in host)
    assert not any("<frozen" in line or (line[-7:] == "frames]" and ":3 →" in line) for line in host)
    assert host[0].endswith(HOST_WITHOUT_TIMELINE.get(path.stem, ""))


FIRST_FINDINGS = {
    "h100-compiled_encoder": "waits 64 % for Python and operators, which launch few kernels",
    "h100-flax_nnx": "beside jit(train_step) each step calls 6 more jitted functions",
    "h100-llama_generate": "aten::_cudnn_attention_forward keeps the host for 74.7 ms at 62 of 496 calls",
    "h100-timm_resnet50": "aten::normal_ computes on the CPU, 41.4 ms at each of 19 calls",
    "h100-trainer_gpt2": "573 launches a step of kernels that take 7.7 us each",
    "sample-h100": "matrix products in 32-bit floating point without tensor cores",
}


def test_the_first_five_lines_of_the_run_and_of_the_view_say_what_to_change_first(recording: Recording) -> None:
    style = Style(width=120)
    ended = summary_lines(recording.profile, style, answered(recording.profile))
    shown = ShownProfile(recording.profile, "run.bragg", ViewOptions())
    viewed = profile_lines(shown, style, answer=answer_lines(Evidence(recording.profile), style))
    for lines in (ended, viewed):
        assert any(FIRST_FINDINGS[recording.name] in line for line in lines[:5])
