"""The numbers that rules compare with, each with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Threshold:
    """One number.

    Attributes:
        value: The number.
        unit: `ns`, `B`, `share` (0 to 1), or `1` for counts.
        meaning: What is compared with it.
        source: Where the number comes from.
    """

    value: float
    unit: str
    meaning: str
    source: str


_OWN = "our recordings of real programs on an H100: the value that parts programs with the defect from those without"

_OWN_CODE = "our pairs of kernels, compiled for an H100: the value that parts those with the defect from those without"

IDLE_GPU = Threshold(
    0.8, "share", "a GPU that works more than this is not helped by a faster host", "HTA, nsys: 0.5-0.8"
)
HOST_BOUND = Threshold(0.4, "share", "of the wall time, for which a GPU waits for Python, operators and launches", _OWN)
MANY_LAUNCHES = Threshold(50, "1", "launches a step, above which a graph saves more than it costs", _OWN)
FEW_LAUNCHES = Threshold(1000, "1", "launches in all, where no steps are known", _OWN)
SHORT_CALL = Threshold(
    500_000, "ns", "work of the GPU for one call of a jitted function; dispatching one takes 20 to 100 us", _OWN
)
SHORT_KERNEL = Threshold(20_000, "ns", "mean duration of a kernel, below which the launch costs more", "HTA: 5-20 us")
PLAN_CALL = Threshold(500_000, "ns", "host time of one call of an operator; launching takes 5 to 50 us", _OWN)
COMPILE_WAIT = Threshold(
    10_000_000, "ns", "a wait for a compiler; those of Triton and Inductor take 20 ms and more", _OWN
)
LONG_CODE = Threshold(
    500_000, "ns", "code between two launches; what PyTorch's modules do there takes 10 to 100 us", _OWN
)
LONG_GUARDS = Threshold(20_000, "ns", "time that a call checks guards; those of a few tensors take 3 to 10 us", _OWN)
PLAN_SHARE = Threshold(0.02, "share", "of the wall time, for which a GPU waits for operators of one name", _OWN)
CPU_CALL = Threshold(50_000, "ns", "time of one call of an operator that computes on the CPU", _OWN)
MANY_CALLS = Threshold(100, "1", "calls of jitted functions", "our choice: fewer are over before anybody waits")
MANY_CALLED = Threshold(16, "1", "calls of an operator by a loop", "our choice: fewer are heads or layers")
OF_WALL = Threshold(
    0.05, "share", "of the wall time, for which a GPU waits for a loop", "our choice: a change gains little"
)
MANY_PASSES = Threshold(1.2, "1", "calls of gradients for each call of their operators", _OWN)
MANY_TURNS = Threshold(32, "1", "turns of a loop of JAX in one call", "our choice: fewer are layers")
MANY_UNROLLED = Threshold(
    100, "1", "kernels of one line in a call of a jitted function", "our choice: fewer are layers"
)
MUCH_COMPILING = Threshold(0.2, "share", "of the run, for which a GPU waits for compilers", "our choice")
WITH_CONSTANTS = Threshold(
    0.03,
    "share",
    "of the run, in compilations of one name that hold large constants",
    "our choice: a change gains little",
)
MANY_VERSIONS = Threshold(8, "1", "versions of a kernel", "alignments and sizes of 1 of three arguments make 8")
FEW_TWINS = Threshold(4, "1", "calls of the same modules a step", "our choice: more are layers or a loop")
FEW_USES = Threshold(10, "1", "launches of each version", "compiling takes as long as thousands of launches")
MUCH_GPU = Threshold(0.03, "share", "of the GPU time", "below it, a change gains less than it costs to make")
STAGED_COPY = Threshold(100_000, "ns", "a copy that is long enough to tell whether the call waits for it", _OWN)
SMALL_COPY = Threshold(65_536, "B", "a copy whose cost is that of the call", "PCIe 5: 64 kB take 2 us, a call 5 us")
SMALL_COLLECTIVE = Threshold(
    262_144, "B", "a collective whose cost is its latency", "NVLink moves 256 kB in a few us; a collective takes 20 us"
)
OF_HOST = Threshold(
    0.2, "share", "of the wall time in which the host launches a loop", "our choice: other work may hide it"
)
OFTEN = Threshold(10, "1", "small copies or collectives a step", _OWN)
WAITS = Threshold(0.5, "1", "waits a step", "less are the end of an epoch, or of the program")
RECURRING_WAITS = Threshold(
    0.1, "1", "waits for the GPU a step", "a step may be a call of the model, of which a program makes several"
)
AS_BUSY = Threshold(0.1, "share", "by which a GPU may work less than the busiest and still bound", _OWN)
OF_STEP = Threshold(0.05, "share", "of the steps of a program without a GPU", "tb_plugin: 0.05 for data loading")
OF_PROGRAM = Threshold(
    0.1, "share", "of a program without a GPU, without which calls of a function are not its steps", "our choice"
)
FEW_SAMPLES = Threshold(10, "1", "samples of a line", "our choice: fewer tell little of its share")
MUCH_LOOP = Threshold(0.3, "share", "of the time of the host in the lines of one loop", "our choice")
NEXT_TURN = Threshold(
    0.05,
    "share",
    "of a loop's time for going to the next turn",
    "a step of `for` takes 20 to 50 ns: turns are under 1 us",
)
ELEMENT_TURN = Threshold(
    0.005,
    "share",
    "of a loop's time for going to the next turn, where a turn computes with single elements of arrays",
    "NumPy takes 50 to 200 ns for an element; a turn over rows of 4,000 elements has 0.01 %",
)
MOST_OF_TURNS = Threshold(
    0.6, "share", "of a loop's time for going to the next turn", "more is the work of what gives the turns their values"
)
MANY_KERNELS = Threshold(20, "1", "kernels that an optimizer launches a step", "fused and foreach ones launch 1 to 20")
MANY_FILLS = Threshold(50, "1", "fills of memory a step", _OWN)
MANY_ELEMENTWISE = Threshold(20, "1", "elementwise kernels a step", _OWN)
LONG_CHAIN = Threshold(
    5, "1", "elementwise kernels of one call of a function", "our choice: GELU by its formula has 8, a loss 3"
)
MANY_NODES = Threshold(
    300, "1", "operators that autograd records for no backward pass", "our choice: fewer are a model's few calls"
)
MANY_ROWS = Threshold(
    8, "1", "rows that a loop takes of each tensor", "our choice: fewer are parts, such as q, k and v"
)
JITTED = Threshold(3, "1", "jitted functions that each step calls", "a step of JAX is one function")
WRITING = Threshold(0.02, "share", "of the wall time, for which a GPU waits for output", "a change gains little")
WAITED = Threshold(0.005, "share", "of the wall time, for which a GPU waits for input", "a change gains nothing")
READY_BATCH = Threshold(
    200_000, "ns", "a wait for the batch of a worker; one that is ready takes 90 us: a queue, a thread that pins", _OWN
)
RECURRING = Threshold(10, "1", "copies from which on they recur", "a model and its state are copied once")
EXPOSED = Threshold(0.05, "share", "of the wall time in communication while nothing else runs", "tb_plugin: 0.1")

# What kernels are compiled to, and how they are launched. The widest access is that of the instruction set; where
# "H100" stands, the number is from its white paper and tuning guide.
WIDE_ACCESS = Threshold(16, "B", "what one thread can load or store at once", "PTX: .v4.b32 is the widest")
NARROW_ACCESS = Threshold(
    4, "B", "a thread's access that is narrow where the tile allows more", "GPUscout: vectorized loads"
)
WASTED_TRAFFIC = Threshold(0.3, "share", "of the memory traffic that nobody asked for", "sectors of 32 B; NCU: 0.1")
REREAD = Threshold(
    2.0, "1", "bytes of DRAM for each byte that a kernel states", "our choice: less is a cache that did not hold all"
)
SPILLED = Threshold(0.02, "share", "of the instructions that move registers to local memory and back", _OWN_CODE)
LOW_OCCUPANCY = Threshold(
    0.25, "share", "resident warps below which a kernel cannot hide its loads", "NCU asks for 0.8"
)
NEAR_ROOF = Threshold(0.6, "share", "of the roof, above which more resident warps do not help", "NCU: 0.6-0.8")
MUCH_ATOMIC = Threshold(
    0.3, "share", "of a kernel's time, which its atomic operations take at least", "our choice: less hides behind loads"
)
COLLIDING = Threshold(
    8.0,
    "times",
    "as long as atomic operations on many addresses take, for a kernel that does little else",
    "our choice: a histogram of 64 bins took 30 times as long on an H100",
)
WASTED_WAVE = Threshold(0.2, "share", "of the last wave of blocks that stays empty", "NCU, catalogue of waves: 0.2")
SHORT_LAUNCH = Threshold(10_000, "ns", "a kernel that is bound by its launch, whatever its grid", "HTA: 5-20 us")
SHORT_TURN = Threshold(20_000, "ns", "kernels of a loop that leave most of a GPU idle, on average", "our choice")
BLOCK_LAUNCH = Threshold(
    150,
    "ns",
    "time of a block on its multiprocessor; starting one takes about 80",
    "our recordings of an H100: 79 where blocks have nothing to do, 140 and more where they load 1 kB",
)
SMALL_TILE = Threshold(
    32, "1", "rows and columns of a product's tile", "H100: wgmma multiplies 64 rows at once; our pairs of kernels"
)
LARGE_CODE = Threshold(
    131_072, "B", "machine code of a kernel", "Volta's cache of instructions holds 128 kB (Jia et al., 2018)"
)
ISSUED = Threshold(
    0.8,
    "times",
    "as long as its bytes take to move, for the instructions of a kernel that is not bound by memory",
    "our pairs of kernels on an H100: with 0.7 and less, cheaper arithmetic saved nothing",
)
BUSY_ISSUING = Threshold(
    0.25,
    "share",
    "of a kernel's time, in which schedulers could issue its instructions without a pause",
    "our choice: 0.42 for a power on an H100, which took four times as long as products",
)
SLOW_LINES = Threshold(0.1, "share", "of a kernel's instructions at lines that divide", _OWN_CODE)
MANY_LANES = Threshold(32, "1", "elements of a tile, a warp of them", "CUDA: a warp has 32 threads")
MANY_COMPARED = Threshold(
    16,
    "1",
    "values that each element of a tile is compared with",
    "our choice: fewer cost hardly more than a histogram, a sum of prefixes or a sort",
)
MANY_WAYS = Threshold(
    4, "1", "lanes of a warp that meet in one bank", "our choice: fewer hide behind the loads of the tiles"
)
WAITING_LINE = Threshold(
    0.2,
    "share",
    "of a kernel's samples that wait at one line for one thing",
    "an H100: 0.26 with the defect, 0.09 without",
)
MANY_CONFLICTS = Threshold(
    0.3,
    "share",
    "of the wavefronts of shared memory, which bank conflicts add",
    "our choice: 2 lanes in a bank add 0.5",
)
MEMORY_GROWTH = Threshold(
    0.01,
    "share",
    "of the peak, what all steps of the steady state leave allocated together",
    "our choice: less is no trend; not yet compared with recorded programs",
)
HELD_CLOCKS = Threshold(
    0.1,
    "share",
    "samples in which a limit held the clocks, of those in which the GPU had work",
    "our choice: one sample in ten is no single burst; not yet compared with recorded programs",
)
