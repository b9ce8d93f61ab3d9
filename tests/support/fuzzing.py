"""Damaged and hostile files for every reader, read with limits of time and memory.

    python -m tests.support.fuzzing --mutations 3000 [reader...]

Each file is read, checked and shown as a tree; every tenth one as a page, too. It must be a valid profile or refused in
one line. The memory is a limit of the system, the time that of the processor: neither depends on what else runs.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import resource
import signal
import sqlite3
import sys
import tempfile
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from bragg import formats
from bragg.cli.verbs.analyze import analyze
from bragg.cli.verbs.info import info
from bragg.cli.verbs.source import source
from bragg.errors import BadFile, BraggError, NothingRecorded, UsageError
from bragg.formats.captured.chunks import ChunkType
from bragg.formats.encodings import msgpack, protobuf
from bragg.model import TrackKind
from bragg.proton import viewer
from bragg.views.terminal.profile_view import ShownProfile, profile_lines
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.style import PLAIN, without_control
from bragg.views.web.report_payload import report_payload
from tests.support.captures import small_capture
from tests.support.fuzzed_inputs import (
    FINDING,
    ask_mcp,
    change_request,
    clock_readings,
    mcp_calls,
    read_clocks,
    requests,
    send,
)
from tests.support.iprof_trace import iprof_trace
from tests.support.mutations import (
    Mutation,
    assert_is_one_line_with_a_hint,
    fill,
    flip_bits,
    reseal_chunk,
    splice,
    truncate,
)
from tests.support.nsys_database import TABLES, write_database
from tests.support.profiling_file import profiling_file, samples
from tests.support.source_facts import SOURCE_FACTS
from tests.support.whole_profiles import whole_profile

__all__ = ["READERS", "Result", "fuzz"]

GOLDEN = Path(__file__).parents[1] / "golden"
MEMORY_BYTES = 1 << 30
TIME_S = 5.0
_PAGE_OF = 10
_BYTES = (flip_bits, truncate, splice, fill)
_DEEP: Any = []
for _ in range(900):
    _DEEP = [_DEEP]
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 0.5, 1e308, -1e308, float("nan"), float("inf")),
    *(1 << 31, 1 << 53, 1 << 63, 1 << 64, -(1 << 63), 10**30),
    *("", "a", "\x1b]0;owned\x07\x1b[2J\u202e", "\ud800", "x" * 100_000, "a/../../b", "0x10", "1e999"),
    *([], {}, [None], [[]] * 1000, {"": {}}, {"name": None}, list(range(1000)), _DEEP),
)


META: dict[str, Any] = {
    "command": ["python3", "train.py", "--lr", "1e-3"],
    "host": "gpubox",
    "backend": "cuda",
    "pid": 42,
    "rank": 1,
    "ranks": 2,
    "python": "3.12.3",
    "versions": {"torch": "2.11.0", "triton": "3.6.0"},
    "started_ns": 1_700_000_000_000_000_000,
    "stopped_ns": 1_700_000_001_000_000_000,
    "gpu_first_ns": 1_700_000_000_100_000_000,
    "gpu_last_ns": 1_700_000_000_900_000_000,
    "gpu_busy_ns": {"0": 500_000_000},
    "statistics": {"own_ns": 1_000_000, "dropped_events": 3, "bad_timestamps": 1, "refused_nodes": 2},
    "cuda": {"state": "attached", "driver_version": 13_000, "cupti_version": 130_000, "unread_bytes": 10},
    "sampling": {"samples": 100, "exact": 98, "devices": {"0": {"period": 15, "restarts": 1, "dropped": 2}}},
    "capture": {"complete": False, "damaged_chunks": 1, "bytes_lost": 100},
    "kernel_code": {"matmul": "there is no nvdisasm"},
    "regions": {"step": {"count": 3, "total_ns": 10_000}},
    "interpreted_launches": 4,
    "text_metrics": ["note"],
    **SOURCE_FACTS,
}


def change_json(choose: random.Random, content: bytes) -> bytes:
    """One value of a document is another one, is there many times, or is gone."""
    is_packed = content.startswith(b"\x1f\x8b")
    document = json.loads(gzip.decompress(content) if is_packed else content)
    changed = json.dumps(_changed(choose, document)).encode()
    return gzip.compress(changed, 1) if is_packed else changed


def change_msgpack(choose: random.Random, content: bytes) -> bytes:
    """Likewise in MessagePack."""
    while True:
        try:
            return msgpack.encode(_changed(choose, msgpack.decode(content)))
        except (OverflowError, TypeError):
            continue  # a value that MessagePack has no room for


def change_archive(choose: random.Random, content: bytes) -> bytes:
    """One member of a profile is another one, for which its checksum is right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = choose.choice([*members, "meta.json", "meta.json"])
    mutations = (change_json, change_json, *_BYTES) if name.endswith(".json") else (change_header, *_BYTES)
    members[name] = choose.choice(mutations)(choose, members[name])
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w", choose.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for member, old in members.items():
            archive.writestr(member, old)
    return changed.getvalue()


def change_meta(choose: random.Random, content: bytes) -> bytes:
    """One fact of a profile is another one."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            member = old.read(name)
            new.writestr(name, change_json(choose, member) if name == "meta.json" else member)
    return changed.getvalue()


def change_findings(choose: random.Random, content: bytes) -> bytes:
    """One fact of what a check found is another one."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            member = old.read(name)
            if name == "meta.json":
                facts = json.loads(member)
                member = json.dumps({**facts, "findings": _changed(choose, facts["findings"])}).encode()
            new.writestr(name, member)
    return changed.getvalue()


def change_header(choose: random.Random, content: bytes) -> bytes:
    """A column says another length or type."""
    old = choose.choice([b"'<i4'", b"'<i8'", b"'<f8'", b"'|u1'", b"(", b",)"])
    new = choose.choice([b"'<i8'", b"'<f8'", b"'|O' ", b"(9", b"(99999999", b"(-", b", 2)", b"'|S9'"])
    return content.replace(old, new, 1)


def change_protobuf(choose: random.Random, content: bytes) -> bytes:
    """Fields of a message are repeated, mixed, or hold other numbers."""
    found = [
        protobuf.message(number, value) if isinstance(value, bytes) else protobuf.number(number, value)
        for number, value in protobuf.fields(content)
    ]
    for _ in range(choose.choice((1, 2, 8))):
        place = choose.randrange(len(found))
        other = choose.choice(found)
        number = choose.choice((1, 2, 3, 4, 5, 6, 9, 10, 11, 14, 99))
        found[place] = choose.choice(
            (
                other * choose.choice((1, 1000)),
                protobuf.number(number, choose.choice((0, 1, 1 << 31, 1 << 63, (1 << 64) - 1))),
                protobuf.message(number, other[: choose.randrange(len(other) + 1)]),
                b"",
            )
        )
    return b"".join(found)


def change_database(choose: random.Random, content: bytes) -> bytes:
    """One column of a database holds another value."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.sqlite")
        path.write_bytes(content)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            table = choose.choice(list(TABLES))
            column = choose.choice([row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')])
            scalars = [value for value in VALUES if not isinstance(value, (list, dict)) and value != "\ud800"]
            value = choose.choice([*scalars, b"\xff\x00"])
            if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
                value = float(value)
            connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (value,))
        return path.read_bytes()


def _changed(choose: random.Random, document: Any) -> Any:
    """The document with a change at a place of any depth."""
    holder, key, value = [document], 0, document
    depth = choose.randrange(12)
    while isinstance(value, (list, dict)) and value and depth:
        holder = value  # type: ignore[assignment]
        key = choose.choice(list(value)) if isinstance(value, dict) else choose.randrange(min(len(value), 50))  # type: ignore[assignment]
        value, depth = holder[key], depth - 1
    whole = [document]
    if value is document:
        holder = whole
    kind = choose.randrange(8)
    if kind == 0 and isinstance(holder, list):
        holder[key : key + 1] = [value] * choose.choice((0, 2, 1000))
    elif kind == 1 and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = choose.choice(VALUES)
    return whole[0] if whole else None


def _seen(path: Path, *, as_page: bool) -> None:
    """A profile, as every command reads it, shown."""
    profile = formats.load(path)
    profile.check()
    lines = profile_lines(ShownProfile(profile, path.name, ViewOptions()), PLAIN)
    assert all(without_control(line, PLAIN) == line for line in lines)
    if as_page:
        report_payload(profile, path.name)


def _seen_by_commands(path: Path, *, as_page: bool) -> None:
    """A profile, as commands that look deeper show it."""
    formats.load(path)
    for command in (info, analyze, source):
        given = [str(path), "--json"] if as_page or command is source else [str(path)]
        ended = CliRunner().invoke(command, given).exception
        if ended is not None and not isinstance(ended, (SystemExit, BraggError)):
            raise ended


def _seen_by_proton(path: Path, *, as_page: bool) -> None:
    """A file for the functions of Proton's viewer, which know no errors but ValueError."""
    try:
        viewer.load(path)
    except ValueError as error:
        raise BadFile(str(error), hint="as_page" if as_page else "as Proton") from None


@dataclass(frozen=True)
class Reader:
    """Whole files of one format, how they are changed, what reads them, and how most of the unreadable are refused."""

    content: Callable[[], bytes]
    mutations: tuple[Mutation, ...]
    read: Callable[..., None] = _seen
    refusal: str = "BadFile"


def _golden(name: str, *mutations: Mutation, read: Callable[..., None] = _seen) -> Reader:
    return Reader((GOLDEN / name).read_bytes, (*_BYTES, *mutations, *mutations), read)


def _capture_of_sources() -> bytes:
    """With a counter, a unit of a device whose clock is its own, and the facts of all sources."""
    builder = small_capture().strings("power", "W", "SM 3 warp 1")  # after 6 strings and 2 tracks
    builder.rows(ChunkType.TRACKS, (TrackKind.COUNTER, 0, 7, 0, 6), (TrackKind.DEVICE_UNIT, 0, 9, 0, 8))
    builder.rows(ChunkType.COUNTERS, (1500, 312.5, 2), (1200, 70.0, 2))
    builder.rows(ChunkType.SLICES, (5000, 200, 3, 3, 0))
    builder.rows(ChunkType.CLOCKS, (9, 4000, 1000), (9, 6000, 3000))
    return builder.meta(**META).content()


def _small_profile() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.bragg")
        formats.finish(small_capture().write(Path(folder, "run.part")), path)
        return path.read_bytes()


def _whole_profile() -> bytes:
    """With samples, code, work, a timeline, and the facts that a run has."""
    profile = whole_profile()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.bragg")
        formats.export(replace(profile, meta={**profile.meta, **META}, carried=[FINDING]), "bragg", path)
        return path.read_bytes()


def _database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write_database(Path(folder, "report.sqlite")).read_bytes()


READERS: dict[str, Reader] = {
    "bragg": Reader(_whole_profile, (*_BYTES, *[change_archive] * 12)),
    "bragg-commands": Reader(_whole_profile, (change_meta,), _seen_by_commands),
    "bragg-findings": Reader(_whole_profile, (change_findings,)),
    "bragg-small": Reader(_small_profile, (*_BYTES, *[change_archive] * 12)),
    "capture": Reader(lambda: small_capture().content(), (*_BYTES, reseal_chunk, reseal_chunk)),
    "capture-sources": Reader(_capture_of_sources, (*_BYTES, reseal_chunk, reseal_chunk), refusal="NothingRecorded"),
    "clock-readings": Reader(clock_readings, _BYTES, read_clocks, refusal="read"),
    "mcp-calls": Reader(mcp_calls, (change_json,), ask_mcp),
    "web-requests": Reader(requests, (*_BYTES, change_request), send),
    "jax-trace": _golden("imports/jax.trace.json.gz", change_json),
    "torch-trace": _golden("imports/kineto.json.gz", change_json),
    "chrome": _golden("imports/py-spy.chrome.json", change_json),
    "speedscope": _golden("imports/py-spy.speedscope.json", change_json),
    "pprof": Reader(
        lambda: gzip.decompress((GOLDEN / "imports/jax-memory.pprof").read_bytes()), (*_BYTES, *[change_protobuf] * 4)
    ),
    "perfetto": Reader(lambda: iprof_trace(("a", "b")), (*_BYTES, *[change_protobuf] * 4)),
    "sampling": Reader(lambda: profiling_file(samples()), _BYTES),
    "nsys": Reader(_database, (*_BYTES, *[change_database] * 4)),
    "proton-tree": _golden("proton/kernels-3.9.hatchet", change_json),
    "proton-samples": _golden("proton/samples-3.9.hatchet", change_json),
    "proton-msgpack": _golden("proton/scopes-3.9.hatchet_msgpack", change_msgpack),
    "proton-trace": _golden("proton/kernels-3.9.chrome_trace", change_json),
    "proton-viewer": _golden("proton/kernels-3.9.hatchet", change_json, read=_seen_by_proton),
    "proton-viewer-msgpack": _golden("proton/scopes-3.9.hatchet_msgpack", change_msgpack, read=_seen_by_proton),
}


@dataclass
class Result:
    """What became of the files of one reader.

    Attributes:
        outcomes: How many were read, or refused, and how.
        failures: Number of the file, and what was wrong.
        longest_s: Time of the processor for one file.
        memory_bytes: The most that the process had at any time, beyond what it began with.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    longest_s: float = 0.0
    memory_bytes: int = 0


def fuzz(name: str, n_files: int, path: Path, seed: int = 20) -> Result:
    """Read that many changed files of one reader.

    Args:
        name: A key of `READERS`.
        n_files: How many.
        path: Where each of them is written; one that fails stays beside it.
        seed: The same files for the same seed.
    """
    reader, choose, result = READERS[name], random.Random(f"{name} {seed}"), Result()
    whole, began_bytes = reader.content(), _peak_bytes()
    for number in range(n_files):
        changed = choose.choice(reader.mutations)(choose, whole)
        path.unlink(missing_ok=True)
        path.write_bytes(changed)
        began_s = _processor_s()
        try:
            with _limited():
                outcome = _outcome(reader, path, as_page=number % _PAGE_OF == 0)
        except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
            outcome = "failed"
            result.failures.append((number, traceback.format_exc()))
            path.with_name(f"{name}-{number}").write_bytes(changed)
        result.longest_s = max(result.longest_s, _processor_s() - began_s)
        result.outcomes[outcome] += 1
    result.memory_bytes = _peak_bytes() - began_bytes
    return result


def _outcome(reader: Reader, path: Path, *, as_page: bool) -> str:
    try:
        reader.read(path, as_page=as_page)
    except (BadFile, NothingRecorded) as error:
        assert_is_one_line_with_a_hint(error)
        return type(error).__name__
    except UsageError:
        return "nothing to show"
    return "read"


@contextmanager
def _limited() -> Iterator[None]:
    """Memory beyond what the process has, and time of the processor; TimeoutError or MemoryError beyond them."""

    def out_of_time(*_: object) -> None:
        raise TimeoutError(f"over {TIME_S} s")

    before, limits = signal.signal(signal.SIGPROF, out_of_time), resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, limits[1]))
    signal.setitimer(signal.ITIMER_PROF, TIME_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> int:
    """Fuzz the readers that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("readers", nargs="*", choices=[[], *READERS], help="default: all")
    parser.add_argument("--mutations", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="where files that fail stay")
    options = parser.parse_args()
    n_failures = 0
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for name in options.readers or READERS:
            result = fuzz(name, options.mutations, place / "file", options.seed)
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in result.outcomes.most_common())
            print(f"{name:15} {result.longest_s:5.2f} s  {result.memory_bytes >> 20:4} MB  {outcomes}", flush=True)
            for number, failure in result.failures:
                print(f"{name} {number}: {failure}", flush=True)
            n_failures += len(result.failures)
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
