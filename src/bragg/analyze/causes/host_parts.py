"""What the host does while a GPU waits for it, by nodes of the call tree; no node is in two parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.output import Writer
from bragg.analyze.causes.paths import below, in_files, named
from bragg.analyze.causes.thresholds import CPU_CALL, PLAN_CALL, PLAN_SHARE
from bragg.analyze.host_wait import is_waiting
from bragg.grouping.hlo_names import COMPILE
from bragg.model import FrameKind, Profile
from bragg.model.kernels.names import operator_name
from bragg.model.table import BoolArray, FloatArray

_INPUT = re.compile(r"enumerate\(DataLoader\)#.*|data|torch: data")
_COMPILATION = re.compile(
    rf"{re.escape(COMPILE)}.*|_compile\.compile_inner.*|autotune|"
    r"Autotuner\._bench|CachingAutotuner\.(?:autotune|bench|copy_args|restore_args|precompile)\w*"
)
# Dynamo is there when it has no code for a frame yet, and what it calls; compiled code runs outside of it.
_COMPILER = re.compile(r"torch[/\\]_dynamo[/\\]convert_frame\.py$|triton[/\\]compiler[/\\]compiler\.py$")
_ALLOCATION = re.compile(r"cu(?:da)?(?:Mem)?(?:Alloc|Free|Malloc)\w*")
# Operators over lists of tensors take as long as their lists are.
_IS_ONE = re.compile(r"aten::(?!_foreach_|_fused_|(?:cat|stack)$)")
# They compute nothing: memory that takes long is new.
_ALLOCATES = re.compile(r"aten::(?:new_)?(?:empty(?:_strided|_like)?|resize_|set_)")
# Of PyTorch: those but the first read how many values they find.
_WRITES, _READS = re.compile(r"aten::copy_"), re.compile(r"aten::(?:copy_|nonzero|_unique2?|unique_\w+|masked_select)")
_READ = re.compile(r"cu(?:da)?Memcpy\w*DtoH\w*|copy DtoH")
_WORK = (FrameKind.KERNEL, FrameKind.MEMORY)
_WRITE = re.compile(r"cu(?:da)?Memcpy\w*HtoD\w*|copy HtoD")


@dataclass(frozen=True, eq=False)
class HostParts:
    """Nodes by what their own host code is for: each [n_nodes].

    Attributes:
        input: In or below what loads data.
        compilation: In or below what compiles or tunes.
        output: In or below what writes checkpoints, numbers or logs.
        waiting: Waits for a GPU.
        allocation: Allocates or frees memory of a GPU.
        copying: Copies from the host to a GPU.
        planning: PyTorch's operators that take long on the host before each launch.
        computing: PyTorch's operators that compute on the CPU.
        launching: The rest: operators, launches, Python.
    """

    input: BoolArray
    compilation: BoolArray
    output: BoolArray
    waiting: BoolArray
    allocation: BoolArray
    copying: BoolArray
    planning: BoolArray
    computing: BoolArray
    launching: BoolArray


def host_parts(
    profile: Profile,
    output: Sequence[Writer],
    idle_ns: FloatArray | None,
    longest_ns: FloatArray,
    calls: FloatArray,
    wall_ns: float,
) -> HostParts:
    """The parts.

    Args:
        profile: What was recorded.
        output: The code that writes, by kind.
        idle_ns: [nodes], how long a GPU waited for each one's code; None: not known, and nothing plans or computes.
        longest_ns: [nodes], the longest single wait; 0: not known.
        calls: [nodes], how often the host was in each.
        wall_ns: The wall time of these.
    """
    left = np.ones(len(profile.tree), np.bool_)

    def take(nodes: BoolArray) -> BoolArray:
        nonlocal left
        taken: BoolArray = nodes & left
        left = left & ~taken
        return taken

    found = {
        "input": take(below(profile, named(profile, _INPUT.fullmatch))),
        "compilation": take(compiling(profile)),
        "output": take(np.any([each.nodes for each in output], axis=0)),
        "waiting": take(_waiting(profile)),
        "allocation": take(named(profile, _ALLOCATION.fullmatch)),
        "copying": take(_with_copy_operator(profile, named(profile, _WRITE.fullmatch), _WRITES)),
    }
    planning, computing = _long_operators(profile, idle_ns, longest_ns, calls, wall_ns)
    return HostParts(**found, planning=take(planning), computing=take(computing), launching=left)


def special_parts(profile: Profile, output: Sequence[Writer]) -> BoolArray:
    """Nodes in or below what loads data, compiles or writes, whatever they do: [n_nodes]."""
    found: BoolArray = below(profile, named(profile, _INPUT.fullmatch)) | compiling(profile)
    for each in output:
        found = found | each.nodes
    return found


def compiling(profile: Profile) -> BoolArray:
    """Nodes in or below what compiles or tunes: [n_nodes]."""
    compilers = in_files(profile, _COMPILER) & ~named(profile, "<module>".__eq__)  # that are not just imported
    return below(profile, named(profile, _COMPILATION.fullmatch) | compilers)


def _waiting(profile: Profile) -> BoolArray:
    """What waits for a GPU; PyTorch reads the values of tensors on the CPU by the same operator, without a copy."""
    tree = profile.tree
    reads = named(profile, _READ.fullmatch)
    is_operator = tree.kind == FrameKind.OPERATOR
    copies = tree.sum_up(reads.astype(np.int64)) > 0
    found: BoolArray = _with_copy_operator(profile, reads, _READS) | (
        named(profile, is_waiting) & (~is_operator | copies)
    )
    return found


def _with_copy_operator(profile: Profile, copies: BoolArray, operators: re.Pattern[str]) -> BoolArray:
    """Copies, and PyTorch's operators that make them: an operator of XLA does more than that."""
    above = np.zeros(len(copies), np.bool_)
    above[np.maximum(profile.tree.parent[copies], 0)] = True
    result: BoolArray = copies | (above & named(profile, operators.fullmatch))
    return result


def _long_operators(
    profile: Profile, idle_ns: FloatArray | None, longest_ns: FloatArray, calls: FloatArray, wall_ns: float
) -> tuple[BoolArray, BoolArray]:
    """Operators whose own code keeps a GPU waiting for long: those that launch kernels, and those without GPU work."""
    tree = profile.tree
    planning, computing = np.zeros(len(tree), np.bool_), np.zeros(len(tree), np.bool_)
    if idle_ns is None or not wall_ns:
        return planning, computing
    n_kernels, n_copies = (tree.sum_up((tree.kind == kind).astype(np.int64)) for kind in _WORK)
    names = np.array([operator_name(name) for name in tree.frames.name])
    is_aten = np.array([_IS_ONE.match(name) is not None for name in names.tolist()], np.bool_)[tree.frame]
    allocates = named(profile, _ALLOCATES.fullmatch)
    operators = np.flatnonzero(is_aten & (tree.kind == FrameKind.OPERATOR) & (idle_ns > 0) & ~allocates)
    # A copy takes as long as its bytes do: it neither plans nor computes.
    for chosen, found, least_ns in (
        (n_kernels > 0, planning, PLAN_CALL.value),
        (n_kernels + n_copies == 0, computing, CPU_CALL.value),
    ):
        group = operators[chosen[operators]]
        labels, row = np.unique(names[tree.frame[group]], return_inverse=True)
        idle: FloatArray = np.bincount(row, weights=idle_ns[group], minlength=len(labels)).astype(np.float64)
        count = np.bincount(row, weights=calls[group], minlength=len(labels))
        # The first call may load a library, for long: the others decide.
        longest = np.zeros(len(labels))
        np.maximum.at(longest, row, longest_ns[group])
        is_long = (idle >= PLAN_SHARE.value * wall_ns) & (count > 0) & (idle - longest >= least_ns * count)
        found[group[is_long[row]]] = True
    return planning, computing
