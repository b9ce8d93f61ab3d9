"""Facts of a run, typed: what ran where, when, how it was recorded, and what was lost.

`Profile.meta` is what the file says; what is asked of it stands here, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

from bragg.model.facts import Facts
from bragg.model.kernels.inside import InsideKernel
from bragg.model.kernels.inside_rows import inside_kernels
from bragg.model.ranks.clock import RankClock


@dataclass(frozen=True)
class Cuda:
    """How recording the GPU went.

    Attributes:
        is_attached: CUPTI's records came.
        failure: Why they did not; empty when they did, or were not asked for.
        driver_version: As CUDA counts: 13000; None: not known.
        cupti_version: As CUPTI counts; None: not known.
        missed_start_ns: Time before the first record in which work may have run that is missing.
    """

    is_attached: bool
    failure: str
    driver_version: int | None
    cupti_version: int | None
    missed_start_ns: int


class Run:
    """The facts of one recording; each is empty, 0 or None where the file does not tell.

    Args:
        meta: `Profile.meta`.
    """

    def __init__(self, meta: Mapping[str, Any]) -> None:
        self._meta = meta
        self._facts = Facts(meta)

    @cached_property
    def recordings(self) -> list[Run]:
        """The recordings that were merged; of a single one itself."""
        merged = self._meta.get("merged")
        return [Run(each) for each in self._facts.rows("merged") if each] if isinstance(merged, list) else [self]

    @property
    def recording_metas(self) -> list[dict[str, Any]]:
        """META of each recording that was merged; of a single one its own."""
        merged = self._meta.get("merged")
        return list(merged) if isinstance(merged, list) else [dict(self._meta)]

    @property
    def is_merged(self) -> bool:
        """Whether several recordings were merged."""
        return "merged" in self._facts

    # What ran, and where.

    @property
    def command(self) -> list[str]:
        """The words of the command line."""
        return self._facts.texts("command")

    @property
    def kernel_error(self) -> str:
        """What CUDA or an interpreter says of the kernel whose error ended the program; empty: none did."""
        return self._facts.text("kernel_error")

    @property
    def pid(self) -> int | None:
        """Process id."""
        return self._facts.integer("pid")

    @property
    def parent_pid(self) -> int | None:
        """Process id of the process that started it."""
        return self._facts.integer("ppid")

    @property
    def workers(self) -> list[Run]:
        """Workers of data loaders that it started and that stand in its profile, in the order of their beginning."""
        return [Run(row) for row in self._facts.rows("workers") if row]

    @property
    def rank(self) -> int | None:
        """Rank in a distributed job."""
        return self._facts.integer("rank")

    @property
    def world(self) -> int | None:
        """Number of ranks of that job."""
        return self._facts.integer("ranks")

    @property
    def place(self) -> Facts:
        """Place in that job, as the launcher told: launcher, run id, local rank, restarts, coordinates."""
        return self._facts.table("job")

    @property
    def host(self) -> str:
        """Name of the machine."""
        return self._facts.text("host")

    @property
    def platform(self) -> str:
        """System and processor."""
        return self._facts.text("platform")

    @cached_property
    def versions(self) -> dict[str, str]:
        """Of Python and of frameworks, by name."""
        table = self._facts.table("versions")
        found = {"python": self._facts.text("python"), **{name: table.text(name) for name in table}}
        return {name: version for name, version in found.items() if version}

    @cached_property
    def devices(self) -> list[Mapping[str, Any]]:
        """Facts of each GPU, by ordinal; an empty object if nothing is known."""
        return self._facts.rows("devices")

    def records_of_device(self, ordinal: int) -> list[Mapping[str, Any]]:
        """Facts of one GPU, one object for each recording that has them."""
        runs = [self] if "devices" in self._facts else [run for run in self.recordings if run is not self]
        found = (run.devices[ordinal] for run in runs if 0 <= ordinal < len(run.devices))
        return [device for device in found if device]

    # When.

    @property
    def started_ns(self) -> int | None:
        """When recording began, on the profile's clock."""
        return self._facts.integer("started_ns")

    @property
    def ended_ns(self) -> int | None:
        """When it ended, ns since the epoch, or was last written to while it ran; None: not known."""
        return self._facts.integer("stopped_ns") or self._facts.integer("end_ns")

    @property
    def duration_ns(self) -> int | None:
        """From the start of the recording to its end."""
        start, end = self.started_ns, self.ended_ns
        return None if start is None or end is None else max(end - start, 0)

    @property
    def exit_code(self) -> int | None:
        """Exit status of the process; negative: the signal that ended it; None: not known, or it goes on."""
        return self._facts.integer("exit_code")

    @property
    def phase(self) -> int:
        """Number of the phase of a session that was recorded; 0: the first, or all."""
        return self._facts.count("phase")

    @property
    def main_thread_ns(self) -> tuple[int, int] | None:
        """How long the main thread ran, and how long it was ready to but had no core; None: not known."""
        before, after = (self._facts.values().get(name) for name in ("scheduled_before", "scheduled"))
        if not (_are_times(before) and _are_times(after)):
            return None
        ran_ns, ready_ns = after[0] - before[0], after[1] - before[1]
        return (ran_ns, ready_ns) if ran_ns >= 0 and ready_ns >= 0 else None

    @property
    def taken_ns(self) -> int | None:
        """How long, at least, other programs had the core that the main thread was ready for; None: not known.

        It may have waited as long for other threads and processes of its own program as these ran.
        """
        before, after = map(self._facts.integer, ("program_ran_before_ns", "program_ran_ns"))
        if self.main_thread_ns is None or before is None or after is None:
            return None
        ran_ns, ready_ns = self.main_thread_ns
        return max(ready_ns - max(after - before - ran_ns, 0), 0)

    @property
    def threads_ns(self) -> dict[str, int]:
        """How long samples found other threads than the main one in Python, by name, the longest first."""
        found: Counter[str] = Counter()
        for run in self.recordings:
            before, after = (Facts(run._meta).table(name).values() for name in ("threads_before", "threads"))
            for name, until_ns in after.items():
                began_ns = before.get(name, 0)
                if type(until_ns) is type(began_ns) is int and until_ns > began_ns:
                    found[name] += until_ns - began_ns
        return dict(found.most_common())

    @property
    def clock(self) -> RankClock:
        """What the recorder noted of its clock."""
        return RankClock.of_meta(self._meta)

    @property
    def gpu_first_ns(self) -> int | None:
        """When the first work of any GPU began."""
        return self._facts.integer("gpu_first_ns")

    @property
    def gpu_last_ns(self) -> int | None:
        """When the last work of any GPU ended."""
        return self._facts.integer("gpu_last_ns")

    @property
    def gpu_span_ns(self) -> int:
        """From the first to the last work of any GPU."""
        first, last = self.gpu_first_ns, self.gpu_last_ns
        return 0 if first is None or last is None else max(last - first, 0)

    @cached_property
    def gpu_busy_ns(self) -> dict[int, int]:
        """Time in which each GPU worked, by ordinal."""
        busy = self._facts.table("gpu_busy_ns")
        return {int(name): busy.count(name) for name in busy if name.isdecimal() and busy.integer(name) is not None}

    # How it was recorded.

    @property
    def recorder(self) -> str:
        """The other program that recorded the run; empty when bragg did."""
        return self._facts.text("recorder")

    @property
    def bragg(self) -> str:
        """Version of bragg that recorded the run."""
        return self._facts.text("bragg")

    @property
    def backend(self) -> str:
        """What measured."""
        return self._facts.text("backend") or self.recorder or ("cuda" if self.cuda.is_attached else "cpu")

    @property
    def has_native_frames(self) -> bool:
        """Whether call paths were asked for with C and C++ functions."""
        return self._facts.text("context") == "native"

    @property
    def is_trace(self) -> bool:
        """Whether a timeline was asked for."""
        return self._facts.text("data") == "trace"

    @property
    def recorder_directory(self) -> str:
        """Where the recorder's own Python files are, which call paths leave out."""
        return self._facts.text("recorder_directory")

    @cached_property
    def cuda(self) -> Cuda:
        """How recording the GPU went."""
        table = self._facts.table("cuda")
        failed = table.text("state") == "failed"
        return Cuda(
            is_attached=table.text("state") == "attached",
            failure=table.text("reason", "unknown reason") if failed else "",
            driver_version=table.integer("driver_version"),
            cupti_version=table.integer("cupti_version"),
            missed_start_ns=table.count("missed_start_ns"),
        )

    @property
    def sampling(self) -> Facts:
        """What the sampling of instructions found, cost and lost; empty when it was not asked for."""
        return self._facts.table("sampling")

    @property
    def was_sampled(self) -> bool:
        """Whether the sampling of instructions was asked for."""
        return self._facts.is_table("sampling")

    @cached_property
    def inside_kernels(self) -> list[InsideKernel]:
        """What clocks inside of kernels said, for each kernel that was to have some."""
        return inside_kernels(self._facts.rows("inside_kernels"))

    @property
    def overhead(self) -> Facts:
        """What the recorder counted and timed of itself."""
        return self._facts.table("overhead")

    @property
    def autograd_nodes(self) -> int | None:
        """Nodes of autograd that PyTorch's operators made; None: they were not counted."""
        return self._facts.table("statistics").integer("autograd_nodes")

    @property
    def evaluated_nodes(self) -> int | None:
        """Nodes of autograd that backward passes ran; None: they were not counted."""
        return self._facts.table("statistics").integer("evaluated_nodes")

    # What was lost.

    @property
    def tells_losses(self) -> bool:
        """Whether the recorder counts what it loses."""
        return "statistics" in self._facts and "recorder" not in self._facts

    def lost(self, table: str, name: str) -> int:
        """One of the counts of what was lost, by the table it is in."""
        return self._facts.table(table).count(name)

    @property
    def write_error(self) -> str:
        """What ended the writing of the capture; empty: nothing did."""
        return self._facts.table("capture").text("write_error")

    @property
    def is_running(self) -> bool:
        """Whether the program ran when its capture was read."""
        return self._facts.table("capture").is_true("running")

    @property
    def is_cut_short(self) -> bool:
        """Whether the capture has no end, and its program was not seen to run."""
        return self._facts.table("capture").is_false("complete") and not self.is_running

    @property
    def interpreted_launches(self) -> int:
        """Launches of Triton's kernels that bragg's interpreter executed."""
        return self._facts.count("interpreted_launches")

    @property
    def target(self) -> str:
        """The GPU that executed kernels of Triton's were compiled for, without one; empty: for none."""
        return self._facts.text("target")

    @property
    def compiled_for_target(self) -> dict[str, dict[str, str]]:
        """Attributes of kernels that were compiled so, by name: where their code is."""
        return self._attributes("compiled_for_target")

    @property
    def exact_launches(self) -> int:
        """Launches whose counters were counted exactly, one at a time: the host waited for each."""
        return sum(Facts(each).table("exact_counters").count("counted_launches") for each in self.recording_metas)

    @property
    def region_spans_left_out(self) -> int:
        """Steps and regions that the timeline leaves out."""
        return self._facts.count("region_spans_left_out")

    @cached_property
    def incomplete_code(self) -> dict[str, str]:
        """Kernels whose code is not complete, and why."""
        table = self._facts.table("kernel_code")
        return {name: table.text(name) for name in table}

    @cached_property
    def kernel_options(self) -> Facts:
        """What each kernel was compiled with, and what it takes of a multiprocessor, by `symbol/hash`."""
        return self._facts.table("kernel_options")

    @property
    def keeps_code(self) -> bool:
        """Whether the code of kernels was requested; true if the file does not say."""
        return not self._facts.is_false("keeps_kernel_code")

    @property
    def folds_idle(self) -> bool:
        """Whether the recorder added up what GPUs waited for; true if the file does not say."""
        return not self._facts.is_false("folds_idle")

    @cached_property
    def native_files(self) -> Mapping[str, Mapping[str, str]]:
        """Path and build id of each file with native functions, by the name that frames carry."""
        value = self._meta.get("native_files")
        return value if isinstance(value, Mapping) else {}

    @property
    def text_metrics(self) -> list[str]:
        """Metrics that were left out because their values are text."""
        return self._facts.texts("text_metrics")

    @property
    def assumed_inclusive(self) -> list[str]:
        """Metrics that are added up although the file does not say that they may be."""
        return self._facts.texts("assumed_inclusive")

    # What frameworks say of the program.

    @cached_property
    def attributes(self) -> Mapping[str, Mapping[str, str]]:
        """Attributes of frames, by their names: modules, compilers' files, colours."""
        return self._attributes("attributes")

    def _attributes(self, key: str) -> dict[str, dict[str, str]]:
        return {
            name: {key: text for key, text in table.values().items() if isinstance(text, str)}
            for name, table in self._facts.table(key).tables().items()
        }

    @cached_property
    def regions(self) -> Facts:
        """Times of steps and of regions of training, as the recorder added them up."""
        return self._facts.table("regions")

    @property
    def compiled_regions(self) -> object:
        """Functions that PyTorch compiled, by their numbers."""
        return self._meta.get("compiled_regions")

    @property
    def gpu_activity(self) -> object:
        """Launches and busy time of GPUs over time, as `native/data` writes the curve."""
        return self._meta.get("gpu_activity")

    @property
    def has_regions(self) -> bool:
        """Whether regions were asked for."""
        return "regions" in self._facts


def _are_times(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and [type(each) for each in value] == [int, int]
