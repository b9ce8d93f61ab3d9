from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.analyze.kernel_choice import choose_kernel
from bragg.analyze.source_lines import annotate
from bragg.code.sass.instruction_kinds import instruction_kinds, word_of_kind
from bragg.code.source_map import Stage, source_name
from bragg.model import Finding, Metric, MetricKind, Profile, Severity
from bragg.model.kernels.counted import COUNTED_LAUNCHES, EXECUTED, THREADS
from bragg.views.terminal.source_code.kernel_source import source_json, source_lines
from bragg.views.text.style import PLAIN, Style
from tests.support.sampled_kernels import CODE, FILE, KEY, sampled_profile


def shown(profile: Profile, stage: Stage | None = None, style: Style = PLAIN) -> list[str]:
    return source_lines(annotate(profile, choose_kernel(profile, None), stage), stage, style)


def test_each_line_has_its_share_its_bar_and_its_main_stall() -> None:
    title, _, heading, columns, *lines = shown(sampled_profile())[:9]
    assert title == "softmax<BLOCK=1024 w4 s3>  100 samples, 75.0 % stalled, mostly memory: long_scoreboard"
    assert heading == f"softmax  {FILE}"
    assert columns.split() == ["share", "main", "stall,", "share", "of", "line"]
    assert lines[2] == " 60.0 %  ████▊     memory: long_scoreboard 92 %   8      values = tl.load(x)"
    assert lines[3] == " 30.0 %  ██▍       math: wait 50 %                9      values = scale(values)"
    assert lines[4] == " 10.0 %  ▊         issued                        10      tl.store(out, values)"


def test_a_stall_that_hardly_is_one_is_less_than_a_percent() -> None:
    profile = sampled_profile()
    many = {name: replace(metric, own=metric.own * 1000) for name, metric in profile.metrics.items()}
    rare = many["stalled_long_scoreboard"]
    many["stalled_long_scoreboard"] = replace(rare, own=np.where(rare.own > 10_000, 10, 0))
    line = shown(replace(profile, metrics=many))[6]
    assert line.startswith(" 60.0 %  ████▊     memory: long_scoreboard <1 %")


def clocked(profile: Profile) -> Profile:
    place = [{"file": FILE, "line": 8, "function": "softmax"}]
    does = {"begin loads from global memory": [40, 160], "wait for other warps": [100, 100, 400]}
    segments = [{"does": name, "place": place, "cycles": cycles} for name, cycles in does.items()]
    told = {"kernel": "softmax<BLOCK=1024 w4 s3>", "covered_cycles": 1000, "segments": segments}
    return replace(profile, meta={**profile.meta, "inside_kernels": [told]})


def counted(profile: Profile) -> Profile:
    """The load is executed 4 times by whole warps, the rest once by half of one."""
    names = [profile.tree.frames.name[frame] for frame in profile.tree.frame.tolist()]
    executed = np.array([(4 if name == "+0x0" else 1) * name.startswith("+0x") for name in names], np.int64)
    threads = executed * np.where(executed > 1, 32, 16)
    launches = np.array([2 * name.startswith("softmax<BLOCK=1024") for name in names], np.int64)
    counts = {EXECUTED: executed, THREADS: threads, COUNTED_LAUNCHES: launches}
    made = {name: Metric(name, "1", MetricKind.INCLUSIVE, own) for name, own in counts.items()}
    return replace(profile, metrics={**profile.metrics, **made})


def test_counts_stand_beside_samples_with_the_threads_of_a_warp() -> None:
    columns, *lines = shown(counted(sampled_profile()))[3:]
    assert columns.split()[6:] == ["inst_executed", "thread_inst_executed_pred_on", "threads", "a", "warp"]
    assert lines[2].split("92 %")[1].split()[:4] == ["4", "128", "32.0", "8"]
    assert "16.0" in lines[4]


def test_counts_and_instructions_tell_floating_point_operations() -> None:
    code = [CODE[0], CODE[1]._replace(text="FFMA R1, R1, R3, R5 ;"), CODE[2]]
    title, _, _, columns, *lines = shown(counted(sampled_profile(samples=False, instructions=code)))
    assert title.split("instruction in ")[1].startswith("2 launches: 32 flops, ")  # 2 of each of 16 threads
    assert columns.split()[0] == "flops"
    assert next(line for line in lines if "scale(values)" in line).split()[0] == "32"
    unknown = [CODE[0], CODE[1]._replace(text="UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8] ;"), CODE[2]]
    assert "flops" not in shown(counted(sampled_profile(samples=False, instructions=unknown)))[0]


def test_counts_alone_and_as_values() -> None:
    profile = counted(sampled_profile())
    alone = {name: profile.metrics[name] for name in (COUNTED_LAUNCHES, EXECUTED, THREADS)}
    profile = replace(profile, metrics=alone)
    title, *_ = shown(profile)
    total = int(profile.total(EXECUTED))
    assert title.startswith(f"softmax<BLOCK=1024 w4 s3>  counted by instruction in 2 launches: {total} inst_executed, ")
    values = source_json(annotate(profile, choose_kernel(profile, None), None), None)
    assert values["counted_launches"] == 2
    (load,) = [line for line in values["sections"][0]["lines"] if line["number"] == 8]
    assert load["counts"] == {EXECUTED: 4, THREADS: 128}


def test_clocks_stand_beside_samples() -> None:
    columns, *lines = shown(clocked(sampled_profile()))[3:]
    assert columns.split()[6:] == ["clocks", "what", "warps", "did,", "share", "of", "line"]
    assert lines[2] == (
        " 60.0 %  ████▊     memory: long_scoreboard 92 %   80.0 %  wait for other warps 75 %       "
        "8      values = tl.load(x)"
    )
    assert "%" not in lines[4].partition("issued")[2]


def test_clocks_without_samples_stand_alone() -> None:
    title, _, _, columns, *lines = shown(clocked(sampled_profile(samples=False)))
    assert title == "softmax<BLOCK=1024 w4 s3>  clocks told of 1,000 cycles of its warps"
    assert columns.split() == ["clocks", "what", "warps", "did,", "share", "of", "line"]
    assert lines[2] == " 80.0 %  wait for other warps 75 %       8      values = tl.load(x)"


def test_instructions_are_numbered_by_offset() -> None:
    assert shown(sampled_profile(), Stage.SASS)[-4].endswith("issued                        0020  STG.E [R4], R1 ;")


def test_without_samples_a_line_shows_what_it_became() -> None:
    profile = sampled_profile(samples=False)
    title, _, _, _, *lines = shown(profile)
    assert title.endswith("this profile has no samples of it")
    assert "1 x LDG.32      8      values = tl.load(x)" in lines
    assert "1 instruction   9      values = scale(values)" in lines


LONG = "long_scoreboard: data of global or local memory, or of a memory barrier object"
WAIT = "wait: the fixed latency of the instruction before"
ACCESSES = "LDG: load from global memory; STG: store to global memory"


def test_words_of_the_listing_are_explained_below_it() -> None:
    became = "became: machine instructions; of an access of memory with the bits of one thread"
    assert shown(sampled_profile(samples=False))[-2:] == ["", f"{became}; {ACCESSES}"]
    assert shown(sampled_profile())[-2:] == ["", f"stalls wait for: {LONG}; {WAIT}"]
    told = [f"stalls wait for: {LONG}; {WAIT}", f"instructions: {ACCESSES}"]
    assert shown(sampled_profile(), Stage.SASS)[-3:] == ["", *told]


def test_what_names_no_word_has_no_legend() -> None:
    code = [each._replace(text="MOV R1, R2 ;") for each in CODE]
    assert shown(sampled_profile(samples=False, instructions=code), Stage.SASS)[-1].endswith("MOV R1, R2 ;")


def test_every_kind_of_instructions_that_is_named_has_a_meaning() -> None:
    names = ("LDG", "STG", "LDL", "STL", "LDS", "STS", "LDGSTS", "LDSM", "STSM", "UTMALDG", "UTMASTG", "UTMAREDG")
    kinds = instruction_kinds((*names, "UBLKCP", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "HGMMA.64x64x16", "UTCHMMA"))
    assert len(kinds) == 20
    assert all(meaning for _, meaning in map(word_of_kind, kinds))


def test_a_line_with_accesses_counts_its_other_instructions() -> None:
    code = [
        *CODE,
        CODE[0]._replace(offset_bytes=0x30, text="@P0 LDG.E.U16 R1, [R2] ;"),
        CODE[0]._replace(offset_bytes=0x40, text="NOP ;"),
    ]
    lines = shown(sampled_profile(samples=False, instructions=code))
    assert "1 x LDG.32, 1 x LDG.U16, 1 other   8      values = tl.load(x)" in lines
    profile = sampled_profile(instructions=code)
    values = source_json(annotate(profile, choose_kernel(profile, None), None), None)
    (load,) = [line for line in values["sections"][0]["lines"] if line["number"] == 8]
    assert load["instructions"] == {"LDG.32": 1, "LDG.U16": 1}


def test_without_machine_code_a_line_shows_its_operations() -> None:
    profile = sampled_profile(samples=False)
    profile.sources[source_name(KEY, Stage.TTGIR)] = "".join(f'op loc("{FILE}":8:{n})\n' for n in (1, 2, 3))
    del profile.sources[source_name(KEY, Stage.SASS)]
    assert "ttgir 1-3   8      values = tl.load(x)" in shown(profile)


def test_without_samples_a_line_of_another_text_shows_where_it_comes_from() -> None:
    lines = shown(sampled_profile(samples=False), Stage.SASS)
    assert lines[-5:-2] == [
        "softmax.py:8                    0000  LDG.E R1, [R2] ;",
        "softmax.py:3 (standard.py:191)  0010  FMNMX R1, R1, R3 ;",
        "softmax.py:10                   0020  STG.E [R4], R1 ;",
    ]


def test_code_is_cut_at_the_end_of_the_terminal() -> None:
    lines = shown(sampled_profile(), style=replace(PLAIN, width=70))
    assert max(map(len, lines[3:])) == 70
    assert lines[6].endswith("8      values = tl.…")


def test_what_is_missing_and_what_belongs_to_no_line_is_said() -> None:
    profile = sampled_profile()
    profile.meta["kernel_code"] = {KEY: "nvdisasm was not found"}
    profile.sources[source_name(KEY, Stage.TTGIR)] = f'tt.load loc("{FILE}":8:5)\n'
    _, missing, unplaced, shared, *_ = shown(profile, Stage.TTGIR)
    assert missing == "nvdisasm was not found"
    assert unplaced == "40.0 % of the samples belong to no line of this text"
    assert "cannot be told apart" in shared


def test_text_that_would_move_the_cursor_is_escaped() -> None:
    profile = sampled_profile()
    profile.sources[FILE] = profile.sources[FILE].replace("tl.load(x)", "tl.load(x)\x1b[2J")
    assert any(line.endswith("tl.load(x)\\x1b[2J") for line in shown(profile))


def test_json_has_every_reason_by_the_name_of_the_vendor() -> None:
    profile = sampled_profile()
    values = source_json(annotate(profile, choose_kernel(profile, None), None), None)
    assert (values["kernel"], values["ir"], values["total"]["samples"]) == ("softmax<BLOCK=1024 w4 s3>", "python", 100)
    (load,) = [line for line in values["sections"][0]["lines"] if line["number"] == 8]
    assert load["reasons"] == {
        "smsp__pcsamp_warps_issue_stalled_long_scoreboard": 55,
        "smsp__pcsamp_warps_issue_stalled_selected": 5,
    }
    assert load["became"] == {"sass": [0]}
    sass = source_json(annotate(profile, choose_kernel(profile, None), Stage.SASS), Stage.SASS)
    places = sass["sections"][0]["lines"][1]["places"]
    assert [(place["line"], place["function"]) for place in places] == [(191, ""), (3, "scale"), (9, "softmax")]


def test_a_finding_stands_below_its_line_in_the_source_alone() -> None:
    profile = sampled_profile()
    found = [Finding("spills", Severity.WARNING, "spills 64 bytes", "smaller blocks", file=FILE, line=8)]
    code = annotate(profile, choose_kernel(profile, None), None)
    lines = source_lines(code, None, PLAIN, found)
    at = next(row for row, line in enumerate(lines) if line.endswith("values = tl.load(x)"))
    assert lines[at + 1].strip() == "^ spills: spills 64 bytes: smaller blocks"
    sass = source_lines(annotate(profile, choose_kernel(profile, None), Stage.SASS), Stage.SASS, PLAIN, found)
    assert not any("spills" in line for line in sass)


def test_a_finding_about_another_specialization_is_left_out() -> None:
    profile = sampled_profile()
    kernels = ("softmax<BLOCK=64 w4 s3>", "softmax<BLOCK=1024 w4 s3>", "softmax", "")
    found = [
        Finding(f"rule{k}", Severity.WARNING, "x", file=FILE, line=8, kernel=name) for k, name in enumerate(kernels)
    ]
    lines = source_lines(annotate(profile, choose_kernel(profile, None), None), None, PLAIN, found)
    assert [line.split()[1] for line in lines if line.strip().startswith("^")] == ["rule1:", "rule2:", "rule3:"]
