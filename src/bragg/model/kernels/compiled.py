"""What compilers made of kernels: one row a specialization, each fact with the line that it comes from.

A fact that the kept texts cannot tell is None; a tuple of facts is empty where the text was read and has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bragg.model.finding import Place

WARP = 32
"""Threads of a warp."""


class TensorCores(str, Enum):
    """The instructions that multiply matrices, by generation."""

    NONE = "none"
    MMA = "mma.sync"  # from sm_70
    WGMMA = "wgmma"  # sm_90
    TCGEN05 = "tcgen05"  # sm_100


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel.

    Attributes:
        name: As the source names it.
        type: As TTIR writes it: `i32`, `!tt.ptr<f16>`.
        divisibility: What the compiler was promised to divide it, in bytes for pointers; 1: nothing.
    """

    name: str
    type: str
    divisibility: int = 1


@dataclass(frozen=True)
class Access:
    """A load or a store of a tile in global memory.

    Attributes:
        place: Its line.
        is_store: Whether it writes.
        tensor: The argument that it is in; empty: not known.
        in_loop: Whether it is in a loop.
        element: Type of its elements: `f32`.
        element_bytes: Of one element.
        elements: Of the tile.
        needed: Elements of the smallest tile that holds what its mask leaves, if constants or the first launch say it.
        strides: Distance of neighbours along each dimension of the tile, in elements: `1`, `stride`, `64*n`; None
            where it is not affine.
        intended_bytes: What one thread reads or writes at once by the layout of TTGIR; None: not known.
        compiled_bytes: The same by the widest instruction of the PTX; None: not known.
        of_address: Arguments without a promised divisor that the address is computed from.
        of_mask: The same for the mask.
        is_repeated: Whether it surely accesses the same in each turn of its loop.
        programs: Axes of the grid, and how many programs along each its mask leaves work, by the first launch.
        usual_strides: As `strides`, but of most neighbours: quotients and remainders of indices jump between some.
        run: Elements that lie in memory one after the other; 0: not known.
        times: How often a program does it in the first launch; None: not known.
    """

    place: Place
    is_store: bool
    tensor: str
    in_loop: bool
    element: str
    element_bytes: int
    elements: int
    needed: int
    strides: tuple[str | None, ...]
    intended_bytes: int | None = None
    compiled_bytes: int | None = None
    of_address: tuple[str, ...] = ()
    of_mask: tuple[str, ...] = ()
    is_repeated: bool = False
    programs: tuple[tuple[str, int], ...] = ()
    usual_strides: tuple[str | None, ...] = ()
    run: int = 0
    times: int | None = 1

    @property
    def size_bytes(self) -> int:
        """Of the tile."""
        return self.elements * self.element_bytes

    @property
    def is_contiguous(self) -> bool:
        """Whether some dimension surely lies in memory element by element."""
        return "1" in self.strides

    @property
    def is_strided(self) -> bool:
        """Whether no dimension does in either direction, for most neighbours."""
        strides = self.usual_strides
        return self.elements > 1 and bool(strides) and not {None, "1", "-1"} & set(strides) and any(self.spread)

    @property
    def jumps(self) -> bool:
        """Whether quotients or remainders of indices are in its address."""
        return self.usual_strides != self.strides

    @property
    def spread(self) -> tuple[str, ...]:
        """The strides of most neighbours that are known and not zero."""
        return tuple(stride for stride in self.usual_strides if stride not in (None, "0"))


@dataclass(frozen=True)
class Dot:
    """A product of tiles.

    Attributes:
        place: Its line.
        in_loop: Whether it is in a loop.
        m: Rows of the result; `n` its columns, `k` what is summed over: 1, where a loop adds up outer products.
        operand: Type of the elements that are multiplied: `f16`, `f32`.
        precision: `ieee`, `tf32` and others, for 32-bit operands.
        widened_from: The type of 16 or 8 bits, the wider one, that operands had before they were made 32 bits wide; one
            of them may be computed from another product instead. Empty: none.
    """

    place: Place
    in_loop: bool
    m: int
    n: int
    k: int
    operand: str
    precision: str
    widened_from: str = ""


@dataclass(frozen=True)
class Loop:
    """An innermost loop that loads tiles from global memory.

    Attributes:
        place: Its line.
        n_loads: Loads of tiles in it.
        n_dots: Products of tiles in it.
        is_pipelined: Whether loads of later turns run while one turn computes; None: not known.
        buffers: Turns whose tiles are held in shared memory; None: not known.
        axes: Of the grid, `x`, `y` and `z`: those along which programs do different work in it; None: not known.
        is_of_earlier: Whether each program adds up the same tiles as those before it, and some more.
        turns: Of the first launch; None: not known.
        step: What its counter grows by in a turn; None: not known.
    """

    place: Place
    n_loads: int
    n_dots: int
    is_pipelined: bool | None = None
    buffers: int | None = None
    axes: tuple[str, ...] | None = None
    is_of_earlier: bool = False
    turns: int | None = None
    step: int | None = None


@dataclass(frozen=True)
class MaskedLoop:
    """A loop of which a mask drops whole turns, although each program takes all of them.

    Attributes:
        place: Its line.
        multiplies: Whether it multiplies tiles.
        limit: What the mask could set instead: `start` or `end` of the loop; `turn`: single turns are kept.
        is_by_data: Whether what each program has loaded says so, as a length.
        turns: Of the first launch; None: not known.
        mean_turns: The same as the mean over programs, which may take unlike many; None: not known.
        kept_turns: Most of them that a window leaves a program; None: no window does, or it is not known.
    """

    place: Place
    multiplies: bool
    limit: str
    is_by_data: bool
    turns: int | None
    mean_turns: float | None = None
    kept_turns: int | None = None


class Compares(str, Enum):
    """What elements are compared for."""

    COUNTS = "counts"  # how many are the same as each of some values
    CHOOSES = "chooses"  # an entry of a table
    PLACES = "places"  # between which two of some edges they are
    PREFIXES = "prefixes"  # sums of those before each
    RANKS = "ranks"  # how many are less than each
    GREATEST = "greatest"  # the greatest one, then the greatest of the others


@dataclass(frozen=True)
class Comparison:
    """A tile whose elements are all compared with one value after the other, or with each other.

    Attributes:
        place: Its line.
        kind: What for.
        values: With how many each element is compared; None: not known.
        in_loop: Whether it is in a loop.
    """

    place: Place
    kind: Compares
    values: int | None
    in_loop: bool


@dataclass(frozen=True)
class ProgramOrder:
    """Programs of a product of matrices that go along one whole side of the result before they turn.

    Attributes:
        place: The line that says so.
        operand: Which one a program does not share with the next: 0 the left one, 1 the right one.
        tiles: Along this side; None: as many as the grid has along x, or not known.
    """

    place: Place
    operand: int
    tiles: int | None


@dataclass(frozen=True)
class Conversion:
    """A tile that changes its layout through shared memory in a loop.

    Attributes:
        place: Its line; of a transposition that is the reason, the line of that.
        elements: Of the tile.
        is_transposed: A transposition is the reason.
    """

    place: Place
    elements: int
    is_transposed: bool = False


@dataclass(frozen=True)
class BankConflict:
    """A tile in shared memory that lanes of a warp access one after the other, because they meet in one bank.

    Attributes:
        place: Its line.
        is_store: Whether it is written.
        in_loop: Whether it is in a loop.
        elements: Of the tile.
        element_bytes: Of one element.
        ways: Most lanes that meet in one bank; at least 2.
    """

    place: Place
    is_store: bool
    in_loop: bool
    elements: int
    element_bytes: int
    ways: int


@dataclass(frozen=True)
class Reduction:
    """A reduction of a tile along one axis.

    Attributes:
        place: Its line.
        in_loop: Whether it is in a loop.
        elements: Of the tile.
        crosses_warps: Whether warps exchange their parts through shared memory; None: not known.
        is_only_carried: Whether its result goes into nothing but a sum, a product or an extreme over the turns.
    """

    place: Place
    in_loop: bool
    elements: int
    crosses_warps: bool | None = None
    is_only_carried: bool = False


@dataclass(frozen=True)
class RepeatedPass:
    """A tile that several loops load, one after the other.

    Attributes:
        loops: Their lines, in order.
        loads: The lines of its loads in them.
        size_bytes: Of the tile.
    """

    loops: tuple[Place, ...]
    loads: tuple[Place, ...]
    size_bytes: int


@dataclass(frozen=True)
class SlowOperation:
    """A function or a division of elements of a tile; of floating-point numbers, a division in a loop.

    Attributes:
        place: Its line.
        name: `integer division`, `remainder`, `division`, or the name of the function.
        is_by_invariant: Whether each turn divides by the same value.
        elements: Of the tile.
        in_loop: Whether it is in a loop.
        by: Arguments that it divides by.
    """

    place: Place
    name: str
    is_by_invariant: bool
    elements: int
    in_loop: bool
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Atomic:
    """An atomic operation on global memory.

    Attributes:
        place: Its line.
        in_loop: Whether it is in a loop.
        elements: Of the tile; 1: of a scalar.
        is_one_address: Whether all elements have one address; None: not known.
        is_per_program: Whether programs have addresses of their own; None: not known.
        is_repeated: Whether surely each turn of its loop has the same addresses, and nothing uses what was there.
        axes: Of the grid, on which its address depends: `xz`.
        counts: Whether all elements add the same number.
        times: How often a program does it in the first launch; None: not known.
    """

    place: Place
    in_loop: bool
    elements: int
    is_one_address: bool | None = None
    is_per_program: bool | None = None
    is_repeated: bool = False
    axes: str = ""
    counts: bool = False
    times: int | None = 1


@dataclass(frozen=True)
class Counted:
    """Instructions of one line.

    Attributes:
        place: The line.
        count: How many.
    """

    place: Place
    count: int


@dataclass(frozen=True)
class CompiledKernel:
    """One specialization of a kernel; None: not known.

    Attributes:
        key: `symbol/hash`.
        names: Its kernels' names in the profile.
        target: `cuda:90`.
        num_warps: Warps of a block.
        num_stages: Stages that were asked for.
        num_ctas: Blocks of a cluster.
        max_registers: Of one thread, where `maxnreg` asked the compiler for at most so many.
        registers: Of one thread.
        stack_bytes: Of one thread, spills among it.
        static_shared_bytes: Shared memory of a block, fixed at compile time.
        dynamic_shared_bytes: Shared memory of a block, asked for at launch.
        occupancy: Share of a multiprocessor's warps that can be resident at once, 0 to 1.
        occupancy_limit: What keeps it from being more; empty: nothing, or not known.
        arguments: In order.
        accesses: Loads and stores of tiles.
        dots: Products of tiles.
        products_by_sums: Products of tiles that are written as sums over products of elements.
        loops: Innermost loops with loads.
        conversions: Changes of layout in loops.
        conflicts: Accesses of shared memory with bank conflicts, where the addresses of lanes are known.
        reductions: Reductions of tiles.
        slow: Slow operations.
        atomics: Atomic operations on global memory.
        locks: Waits for a lock that all programs take.
        masked_loops: Loops whose mask drops whole turns, which each program takes all the same.
        comparisons: Tiles that are compared with many values.
        repeated_passes: Tiles that several loops load, one after the other.
        rewritten: Stores of tiles that a later loop loads, changes and stores again.
        single_loads: Loads of one floating-point number, of another one in each turn or program, where no tile is.
        idle_barriers: Barriers in loops, where nothing is written before or in them that another thread could read.
        order: In which order programs take the tiles of a product; None: in groups, or not known.
        prints: Calls of `tl.device_print` and `tl.device_assert`.
        tensor_cores: The newest instructions that multiply matrices.
        doubles: Arithmetic in 64-bit floating point.
        spills: Instructions that write registers to local memory or read them back.
        instructions: All instructions.
        code_bytes: Size of the machine code.
        unread: Why facts are missing, by the text that they come from.
    """

    key: str
    names: tuple[str, ...] = ()
    target: str | None = None
    num_warps: int | None = None
    num_stages: int | None = None
    num_ctas: int | None = None
    max_registers: int | None = None
    registers: int | None = None
    stack_bytes: int | None = None
    static_shared_bytes: int | None = None
    dynamic_shared_bytes: int | None = None
    occupancy: float | None = None
    occupancy_limit: str = ""
    arguments: tuple[Argument, ...] | None = None
    accesses: tuple[Access, ...] | None = None
    dots: tuple[Dot, ...] | None = None
    products_by_sums: tuple[Dot, ...] | None = None
    loops: tuple[Loop, ...] | None = None
    conversions: tuple[Conversion, ...] | None = None
    conflicts: tuple[BankConflict, ...] | None = None
    reductions: tuple[Reduction, ...] | None = None
    slow: tuple[SlowOperation, ...] | None = None
    atomics: tuple[Atomic, ...] | None = None
    locks: tuple[Place, ...] | None = None
    masked_loops: tuple[MaskedLoop, ...] | None = None
    comparisons: tuple[Comparison, ...] | None = None
    repeated_passes: tuple[RepeatedPass, ...] | None = None
    rewritten: tuple[Place, ...] | None = None
    single_loads: tuple[Place, ...] | None = None
    idle_barriers: tuple[Place, ...] | None = None
    order: ProgramOrder | None = None
    prints: tuple[Place, ...] | None = None
    tensor_cores: TensorCores | None = None
    doubles: tuple[Counted, ...] | None = None
    spills: tuple[Counted, ...] | None = None
    instructions: tuple[Counted, ...] | None = None
    code_bytes: int | None = None
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """Threads of a block; 0: not known."""
        return (self.num_warps or 0) * WARP

    @property
    def symbol(self) -> str:
        """Its name in the machine code."""
        return self.key.rpartition("/")[0]

    @property
    def hash(self) -> str:
        """What tells it from other specializations."""
        return self.key.rpartition("/")[2]

    @property
    def arch(self) -> str:
        """`90`; empty: of another vendor, or not known."""
        backend, _, arch = (self.target or "").partition(":")
        return arch if backend == "cuda" else ""
