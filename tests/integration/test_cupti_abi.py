"""The own declarations of CUPTI and the CUDA driver agree with the vendor's headers of several releases.

Headers come from the vendor's wheels, are compiled against, and are never part of this repository.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cupti_wheels import unpacked

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
PROBE = ROOT / "tests" / "support" / "cupti_abi_probe"
RECORD_STRUCTS = {  # macro of the probe: stem of the vendor's struct; a release has it with or without a number
    "VENDOR_KERNEL": "Kernel",
    "VENDOR_MEMCPY": "Memcpy",
    "VENDOR_PEER_MEMCPY": "MemcpyPtoP",
    "VENDOR_MEMSET": "Memset",
    "VENDOR_GRAPH_TRACE": "GraphTrace",
}
QUEUES_WORK = re.compile(
    r"cu(Launch|LaunchGrid(Async)?|Launch(Cooperative)?Kernel.*|GraphLaunch(_ptsz)?|Memcpy.*|Memset.*)"
)
# A capture to CIG makes a command list of a graphics API.
MAKES_GRAPHS = re.compile(r"cu(Stream(BeginCapture|EndCapture)(?!ToCig).*|GraphInstantiate.*|GraphExecUpdate.*)")
DECLARATION = re.compile(
    r"inline constexpr \w+ (k\w+)|using (\w+) =\s+(?:Result|void)\("  # constants, function types
    r"|  (\w+) = \d+|  [^/]*?[ *](\w+)(?:\[\d\]|\{\}| = nullptr)?;"  # enumerators, fields
)


@dataclass(frozen=True)
class Release:
    """CUPTI and CUDA headers that belong together; no version means the newest."""

    cupti: str
    cuda: str

    @property
    def requirements(self) -> list[str]:
        """The wheels that hold the headers; one header of nvidia-cuda-crt serves every release."""
        return [self.cupti, self.cuda, "nvidia-cuda-crt"]


RELEASES = {
    "12.4": Release("nvidia-cuda-cupti-cu12==12.4.127", "nvidia-cuda-runtime-cu12==12.4.127"),
    "12.8": Release("nvidia-cuda-cupti-cu12==12.8.90", "nvidia-cuda-runtime-cu12==12.8.90"),
    "13.0": Release("nvidia-cuda-cupti==13.0.85", "nvidia-cuda-runtime==13.0.96"),
    "newest": Release("nvidia-cuda-cupti", "nvidia-cuda-runtime"),
}


@dataclass(frozen=True)
class Comparison:
    """What the probe printed: (ours, theirs) by name, and the table and name we give each driver callback id."""

    values: dict[str, tuple[int, int]]
    calls: dict[str, tuple[str, str]]

    @property
    def version(self) -> int:
        return self.values["version"][1]


@pytest.fixture(scope="module", params=RELEASES)
def comparison(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    wheels = request.config.cache.mkdir("cupti_abi") / request.param
    work = tmp_path_factory.mktemp(request.param.replace(".", "_"))
    includes = [unpacked(requirement, wheels, "include") for requirement in RELEASES[request.param].requirements]
    return _probe(includes, work)


def _probe(includes: list[Path], work: Path) -> Comparison:
    (work / "vendor_names.h").write_text(_vendor_names(includes[0]))
    program = work / "probe"
    flags = [
        "-std=c++20",
        f"-I{work}",
        f"-I{NATIVE}",
        f"-I{NATIVE / 'tests' / 'fakes'}",
        *(f"-isystem{path}" for path in includes),
    ]
    subprocess.run([os.environ.get("CXX", "g++"), *flags, str(PROBE / "probe.cpp"), "-o", str(program)], check=True)
    rows = [line.split() for line in subprocess.check_output([str(program)], text=True).splitlines()]
    return Comparison(
        values={name: (int(ours), int(theirs)) for name, ours, theirs in (row for row in rows if row[0] != "cbid")},
        calls={row[1]: (row[2], row[3]) for row in rows if row[0] == "cbid"},
    )


def _vendor_names(cupti: Path) -> str:
    """The part of the probe that differs from release to release."""
    activities = "".join(path.read_text() for path in cupti.glob("cupti_activity*.h"))
    lines = []
    for macro, stem in RECORD_STRUCTS.items():
        numbers = re.findall(rf"\}} CUpti_Activity{stem}(\d*);", activities)
        lines.append(f"#define {macro} CUpti_Activity{stem}{max(numbers, key=lambda number: int(number or 1))}")
    # cuda<number> is an id that this release has retired.
    cbids = re.findall(r"CUPTI_DRIVER_TRACE_CBID_(cu(?!da\d)\w+)", (cupti / "cupti_driver_cbid.h").read_text())
    lines.append("#define FOR_EACH_CBID(X) " + " ".join(f"X({name})" for name in cbids))
    return "\n".join(lines) + "\n"


def _declared_names() -> set[str]:
    """The names a complete probe prints: enumerators, constants, fields and signatures of the headers."""
    names, scope = set(), ""
    for header in (
        "cuda_abi.h",
        "cupti_abi.h",
        "cupti_pc_sampling.h",
        "cupti_range_profiler.h",
        "cupti_sass_metrics.h",
        "cupti_records.h",
    ):
        for line in (NATIVE / "backends/cuda/driver" / header).read_text().splitlines():
            if opened := re.match(r"(?:enum class|struct) (\w+)(?: : \w+)? \{(.*)", line):
                scope = opened[1] + "."
                names |= {scope + name for name in re.findall(r"(\w+) = \d+", opened[2])}
            elif opened := re.match(r"namespace (resource) \{", line):
                scope = opened[1] + "::"
            elif line.startswith("}"):
                scope = ""
            elif (found := DECLARATION.match(line)) and (scope or not line.startswith(" ")):
                names.add(scope + next(filter(None, found.groups())))
    return {name for name in names if not re.search(r"\.(padding|reserved)", name)}


def test_every_declared_value_equals_the_vendors(comparison: Comparison) -> None:
    sizes = {name for name in comparison.values if name.startswith("record_size.")}
    differing = {name: pair for name, pair in comparison.values.items() if pair[0] != pair[1] and name not in sizes}
    assert differing == {}


def test_record_sizes_equal_the_vendors_or_are_not_claimed(comparison: Comparison) -> None:
    sizes = {name: pair for name, pair in comparison.values.items() if name.startswith("record_size.")}
    claims = comparison.version < 130600  # the first release that the size table does not know
    assert sizes == {name: (theirs if claims else 0, theirs) for name, (_, theirs) in sizes.items()}


def test_fake_driver_uses_the_vendors_callback_ids(comparison: Comparison) -> None:
    named = {name: our_name for name, (table, our_name) in comparison.calls.items() if table == "fake"}
    assert named == {name: name for name in named}
    assert len(named) == len(re.findall(r'\{\d+, "cu', (NATIVE / "tests/fakes/driver/driver_cbids.h").read_text()))


def test_tables_hold_exactly_the_calls_that_queue_work(comparison: Comparison) -> None:
    ours = {name: our_name for name, (table, our_name) in comparison.calls.items() if table in ("launch", "memory")}
    assert ours == {name: name for name in comparison.calls if QUEUES_WORK.fullmatch(name)}
    launches = {name for name, (table, _) in comparison.calls.items() if table == "launch"}
    assert launches == {name for name in ours if "Launch" in name}


def test_table_of_graphs_holds_exactly_the_calls_that_make_them(comparison: Comparison) -> None:
    ours = {name: our_name for name, (table, our_name) in comparison.calls.items() if table == "graph"}
    assert ours == {name: name for name in comparison.calls if MAKES_GRAPHS.fullmatch(name)}


def test_calls_that_sampling_must_not_meet_have_the_vendors_ids(comparison: Comparison) -> None:
    ours = {name: our_name for name, (table, our_name) in comparison.calls.items() if table == "sampling"}
    assert ours == {name: name for name in ours}
    assert {"cuLibraryLoadData", "cuKernelGetFunction", "cuFuncSetAttribute", "cuModuleLoadDataEx"} <= set(ours)


@pytest.mark.parametrize("comparison", ["newest"], indirect=True)
def test_newest_release_checks_every_declaration(comparison: Comparison) -> None:
    ours = {"kFirstVersion", "kSharedFrom", "kSubscriberParamsBytes13_0", "SamplingSetting.unused"}
    assert _declared_names() - comparison.values.keys() == ours
