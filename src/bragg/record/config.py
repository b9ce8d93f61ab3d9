"""What to record and where to write it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from bragg.errors import UsageError
from bragg.record import region_names
from bragg.record.counter_names import check_counter_names
from bragg.record.output import check_pattern
from bragg.registry import BACKENDS

BackendName = str  # `auto`, or a row of `BACKENDS`
Context = Literal["python", "native", "shadow"]
Data = Literal["tree", "trace"]
Framework = Literal["auto", "torch", "jax", "off"]
Graphs = Literal["node", "graph"]
GpuApi = Literal["off", "sync", "all"]
Sampling = Literal["off", "continuous", "windows", "serialized"]
Interpret = Literal["auto", "on", "off"]

# What is done with the profiles; their processes need not know.
_OF_FILES = ("output", "force", "rotate_s", "rotate_keep")
_LEAST_WATCH_S = 0.5
_ROTATE = "bragg run --rotate 60s --keep 10"
# What the hardware can do, in powers of two.
_MAX_TREE_MB = 1 << 14  # 64 M call paths, as many as have numbers
_MIN_CLOCKS_MB, _MAX_CLOCKS_MB = 4, 1 << 14
_MAX_COUNTERS_BYTES = 511  # room in `bragg_session_options`
_MAX_EXACT_LAUNCHES = 1_000_000
_NOT_POSIX = re.compile(r"\(\?|\\[AZadDfnrtv0-9]")  # `re` knows them, regcomp does not, or as a plain letter
_MIN_COUNTER_US, _MAX_COUNTER_US = 10, 100_000  # 10 us are reached with two metrics on an H200
_MIN_TELEMETRY_HZ, _MAX_TELEMETRY_HZ = 0.1, 100.0  # NVML's values change 10 to 50 times a second
_MIN_SAMPLE_PERIOD, _MAX_SAMPLE_PERIOD = 5, 31


@dataclass(frozen=True)
class RecordConfig:
    """How a recording is made. This is the one list of options: `options` carries them to what takes them by name.

    Attributes:
        backend: What measures: `cuda`, `cpu`, or `auto`: the GPU if there is one.
        context: What a call path holds. `python`: Python functions, scopes and operators; `native`: also the C and C++
            functions between Python and a launch; `shadow`: scopes and operators alone.
        data: `tree` sums up by call path, in memory that does not grow; `trace` keeps every event for a timeline.
        graphs: `node`: each kernel of a CUDA graph, where it was captured; `graph`: each launch of a graph, for less.
        gpu_api: Record calls of the CUDA runtime and driver as nodes with their host time: `sync` those that wait for
            the GPU, `all` every one that does something. The sessions of a process see what any of them asks for.
        framework: The framework whose operators are recorded; `auto`: every one that the program imports.
        modules: Record each call of a `torch.nn.Module` as a scope, named by its path in the model.
        regions: Parts of training steps of PyTorch to record: `all`, or some of `step`, `data`, `forward`, `backward`,
            `optimizer`, separated by commas.
        shapes: Add the shapes and types of tensors to the names of PyTorch's operators.
        flush_interval_ms: Time between two writes to disk: a killed process loses at most this much.
        tree_limit_mb: Memory that call paths may take in a process, MB, 256 bytes each. The time of further ones counts
            for their caller, and they are counted. The sessions of a process share one tree and the largest limit.
        sample_interval_us: Time between two samples of the host's call paths; 0: none, None: the backend's default.
        sampling: Sample the instructions of GPU kernels. `continuous`: all the time, while kernels run as they would;
            `windows`: in short windows, which together cost at most `sample_budget`; `serialized`: one kernel at a
            time, so that samples are known to belong to a launch, at many times the program's duration.
        sample_period: A multiprocessor is sampled every 2^n cycles; 2^15 is about 60,000 times a second. Less often
            if the GPU's buffer overflows.
        sample_budget: Share of the program's time that windows may cost.
        counters: Sample hardware counters of the whole GPU: names of sets (`default`, `dram`, `tensor`, `l2`, `nvlink`,
            `pcie`), of counters (`dram_read`), or of CUPTI's metrics, separated by commas; empty: none. Those that do
            not go together take turns. They belong to a timeline: with `data` = `trace`.
        exact_kernels: Count launches of the kernels whose name this regular expression finds exactly, one at a time
            (POSIX extended: `[0-9]` for a digit); empty: none. Of the sessions of a process the first one decides,
            until all have ended.
        exact_metrics: What is counted in them, as in `counters`.
        exact_launches: How many launches of each kernel and shape are counted, the first ones.
        counter_interval_us: Time between two samples of counters; None: as short as a tenth of a core can decode.
        telemetry_hz: Samples a second of power, clocks, temperature, load and memory of the GPUs that the program uses,
            and of CPU, memory, disk and network of its process. 0: none. None: up to 10, as 0.1 % of the time affords,
            from the 20th second of a program that uses a GPU on; without energy.
        memory: Follow each block that PyTorch's allocator hands out on a GPU: who holds how much at the peak, by call
            path.
        nccl: Take what NCCL tells its profiler plug-in of each collective and message: communicator, size, algorithm,
            protocol, channels and time on the GPU. NCCL 2.27 or newer.
        no_idle: Leave out why GPUs waited, and for which call paths.
        instrument: Put clocks into the Triton kernels whose name this regular expression finds; empty: into none.
        instrument_budget: Share by which clocks may make a launch longer; a kernel in which they cost more has fewer of
            them, or none.
        instrument_buffer_mb: Memory of the GPU for the readings of clocks, MB.
        instrument_shared: Keep the readings of a block in shared memory until it ends, where kernels leave room.
        instrument_probes: What one launch of each kernel with clocks counts: `all`, or some of `accesses`, `branches`,
            `values`, with commas between.
        nvtx: Record ranges and marks of NVTX; None: unless `BRAGG_NVTX` or `TRITON_ENABLE_NVTX` is off.
        launch_metadata: Call the `launch_metadata` functions of Triton kernels.
        kernel_code: Keep the program's own Python files in the profile, and the code of Triton kernels and of others
            that are sampled: source, TTIR, TTGIR, PTX, SASS.
        rotate_s: Time after which a new phase begins, s; each is written to a file of its own, `<name>.part_<number>`,
            as soon as it is complete. None: one profile of all.
        rotate_keep: How many of these files are kept, the latest ones; None: all.
        watch_s: Time without a collective, of any rank, after which `bragg run` says which ranks have not entered it;
            None: never.
        output: Name of the profile; `%s`: stem of the target's name, `%p`: process id, `%r`: rank, `%h`: host name.
        force: Overwrite existing profiles instead of numbering the new one.
        interpret: Execute Triton kernels on the CPU, under `bragg run`. `auto`: if there is no GPU.
        gpu_target: Compile the Triton kernels that are executed on the CPU for this GPU too, `sm_90` or the like, when
            the program ends; empty: for none.
        as_proton: Let `import triton.profiler` import `bragg.proton`, in the processes of `bragg run`.

    Raises:
        UsageError: A value is out of its range.
    """

    backend: BackendName = "auto"
    context: Context = "python"
    data: Data = "tree"
    graphs: Graphs = "node"
    gpu_api: GpuApi = "off"
    framework: Framework = "auto"
    modules: bool = False
    regions: str = ""
    shapes: bool = False
    flush_interval_ms: int = 1000
    tree_limit_mb: int = 1024
    sample_interval_us: int | None = None
    sampling: Sampling = "off"
    sample_period: int = 15
    sample_budget: float = 0.03
    counters: str = ""
    counter_interval_us: int | None = None
    exact_kernels: str = ""
    exact_metrics: str = "default"
    exact_launches: int = 2
    telemetry_hz: float | None = None
    memory: bool = False
    nccl: bool = False
    no_idle: bool = False
    instrument: str = ""
    instrument_budget: float = 0.05
    instrument_buffer_mb: int = 256
    instrument_shared: bool = False
    instrument_probes: str = ""
    nvtx: bool | None = None
    launch_metadata: bool = True
    kernel_code: bool = True
    rotate_s: float | None = None
    rotate_keep: int | None = None
    watch_s: float | None = None
    output: str = "%s.bragg"
    force: bool = False
    interpret: Interpret = "auto"
    gpu_target: str = ""
    as_proton: bool = False

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_sampling()
        _check_counters(self.counters, self.counter_interval_us, self.data)
        self._check_exact()
        _check_telemetry(self.telemetry_hz)
        self._check_clocks()
        self._check_phases()
        if self.flush_interval_ms < 1:
            raise UsageError(f"the flush interval must be at least 1 ms, not {self.flush_interval_ms}")
        if not 1 <= self.tree_limit_mb <= _MAX_TREE_MB:
            raise UsageError(f"the limit of the tree is 1 to {_MAX_TREE_MB} MB, not {self.tree_limit_mb}")
        check_pattern(self.output)

    def _check_choices(self) -> None:
        _check_choice("backend", self.backend, ("auto", *BACKENDS))
        _check_choice("context", self.context, get_args(Context))
        _check_choice("data", self.data, get_args(Data))
        _check_choice("level of graphs", self.graphs, get_args(Graphs))
        _check_choice("level of GPU API calls", self.gpu_api, get_args(GpuApi))
        _check_choice("framework", self.framework, get_args(Framework))
        _check_choice("way to interpret", self.interpret, get_args(Interpret))
        _check_choice("sampling mode", self.sampling, get_args(Sampling))
        _check_names("region", self.regions, region_names.ALL)
        for wanted, what in ((self.modules, "modules"), (self.shapes, "shapes")):
            if wanted and self.framework not in ("auto", "torch"):
                raise UsageError(f"{what} are those of PyTorch, which the framework {self.framework!r} leaves out")
        if self.nccl and self.backend == "cpu":
            raise UsageError("NCCL works on GPUs, which the backend 'cpu' leaves out", hint="Leave out --backend cpu")

    def _check_sampling(self) -> None:
        if self.sample_interval_us is not None and self.sample_interval_us < 0:
            raise UsageError(f"the sample interval cannot be negative: {self.sample_interval_us} us")
        if not _MIN_SAMPLE_PERIOD <= self.sample_period <= _MAX_SAMPLE_PERIOD:
            raise UsageError(
                f"the sample period is a power of two, from {_MIN_SAMPLE_PERIOD} to {_MAX_SAMPLE_PERIOD}, "
                f"not {self.sample_period}"
            )
        if not 0 < self.sample_budget <= 1:
            raise UsageError(f"the sample budget is a share of the time, above 0, not {self.sample_budget}")

    def _check_clocks(self) -> None:
        _check_pattern(self.instrument)
        _check_names("probe", self.instrument_probes, region_names.PROBES)
        if self.instrument_probes and not self.instrument:
            raise UsageError("probes are those of kernels with clocks", hint="Add --instrument")
        if self.instrument_shared and not self.instrument:
            raise UsageError("readings in shared memory are those of clocks", hint="Add --instrument")
        if not 0 < self.instrument_budget <= 1:
            raise UsageError(f"the budget of clocks is a share of the time, above 0, not {self.instrument_budget}")
        if not _MIN_CLOCKS_MB <= self.instrument_buffer_mb <= _MAX_CLOCKS_MB:
            raise UsageError(
                f"the buffer of clocks is {_MIN_CLOCKS_MB} to {_MAX_CLOCKS_MB} MB, not {self.instrument_buffer_mb}"
            )

    def _check_phases(self) -> None:
        if self.rotate_s is not None and not self.rotate_s > 0:
            raise UsageError(f"the time of a phase must be positive, not {self.rotate_s} s")
        if self.rotate_keep is not None and (self.rotate_keep < 1 or self.rotate_s is None):
            raise UsageError("the number of profiles to keep must be at least 1, and needs a rotation", hint=_ROTATE)
        if self.watch_s is not None and not self.watch_s >= _LEAST_WATCH_S:
            raise UsageError(f"the time after which a job hangs is at least {_LEAST_WATCH_S} s, not {self.watch_s} s")

    def _check_exact(self) -> None:
        if not self.exact_kernels:
            return
        _check_pattern(self.exact_kernels)
        if unknown := _NOT_POSIX.search(self.exact_kernels):
            raise UsageError(
                f"{self.exact_kernels!r} is not a POSIX extended regular expression: {unknown.group()}",
                hint="Write [0-9] for a digit, and plain groups",
            )
        if max(len(self.exact_kernels.encode()), len(self.exact_metrics.encode())) > _MAX_COUNTERS_BYTES:
            raise UsageError(f"kernels and metrics of exact counters take at most {_MAX_COUNTERS_BYTES} bytes each")
        check_counter_names(self.exact_metrics, of_launches=True)
        if not 1 <= self.exact_launches <= _MAX_EXACT_LAUNCHES:
            raise UsageError(f"exact counters are those of 1 to {_MAX_EXACT_LAUNCHES:,} launches of each kernel")
        for wanted, what in ((self.counters, "sampled counters"), (self.sampling != "off", "instruction samples")):
            if wanted:
                raise UsageError(
                    f"exact counters and {what} need the same hardware",
                    hint="Record them in two runs",
                )

    def options(self) -> dict[str, Any]:
        """The options of a session, as the JSON object that carries them into every process of a run."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in _OF_FILES}


def _check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"unknown {what} {value!r}", hint=f"Choose one of: {', '.join(choices)}")


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}") from None


def _check_counters(names: str, interval_us: int | None, data: Data) -> None:
    if len(names.encode()) > _MAX_COUNTERS_BYTES:
        raise UsageError(f"the names of counters take at most {_MAX_COUNTERS_BYTES} bytes")
    check_counter_names(names)
    if names and data != "trace":
        raise UsageError("counters belong to a timeline", hint="bragg run --counters --data trace")
    if interval_us is not None and not _MIN_COUNTER_US <= interval_us <= _MAX_COUNTER_US:
        raise UsageError(f"the interval of counters is {_MIN_COUNTER_US} to {_MAX_COUNTER_US} us, not {interval_us}")


def _check_telemetry(hz: float | None) -> None:
    if hz and not _MIN_TELEMETRY_HZ <= hz <= _MAX_TELEMETRY_HZ:
        limits = f"{_MIN_TELEMETRY_HZ:g} to {_MAX_TELEMETRY_HZ:g}"
        raise UsageError(f"telemetry is sampled {limits} times a second, not {hz:g}")


def _check_names(kind: str, names: str, known: Sequence[str]) -> None:
    try:
        region_names.chosen(names, known)
    except ValueError as error:
        raise UsageError(f"unknown {kind} {str(error)!r}", hint=f"Choose all, or some of: {', '.join(known)}") from None
