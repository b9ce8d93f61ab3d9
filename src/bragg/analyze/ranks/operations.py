"""What kernels of NCCL and RCCL do, and what PyTorch says of the call that launched them."""

from __future__ import annotations

import re
from dataclasses import dataclass

POINT_TO_POINT = "send-receive"
_KERNEL = re.compile(r"(?:n|r)ccl|msccl", re.I)
_OPERATIONS = (
    ("all-reduce", re.compile(r"all[_-]?reduce", re.I)),
    ("all-gather", re.compile(r"all[_-]?gather", re.I)),
    ("reduce-scatter", re.compile(r"reduce[_-]?scatter", re.I)),
    ("all-to-all", re.compile(r"all[_-]?to[_-]?all", re.I)),
    ("broadcast", re.compile(r"broadcast", re.I)),
    ("reduce", re.compile(r"reduce", re.I)),
    (POINT_TO_POINT, re.compile(r"send|recv", re.I)),
)
# Of PyTorch's distributed package: `c10d::allreduce_`, `_c10d_functional::all_gather_into_tensor`.
_OPERATOR = re.compile(r"_?c10d(?:_functional)?::(?P<name>\w+)")
_ALSO_OPERATORS = ("barrier", "gather", "scatter")
_OF_COMPILERS = _OPERATIONS[:4]
_TYPES = re.compile(r"_(f16|bf16|f32|f64|f8e4m3|f8e5m2|[iu]8|[iu]32|[iu]64)(?![a-z0-9])")
# `native/intake/collective_names` writes it: `collective allreduce[1024 f32, group 0 of 8]`,
# and `record/hooks/jax/hlo/collectives`: `collective all-reduce[1024 f32, group devices 0-7 of 8]`, or, where these are
# not known, `collective all-reduce[1024 f32 in groups of 8]`.
_TOLD = re.compile(
    r"collective (?P<name>[\w-]+)\[(?:(?P<count>\d+) (?P<dtype>\w+),? )?"
    r"(?:group (?P<group>.+) of|in groups of) (?P<size>\d+)\]"
)
_BYTES = {
    "f64": 8,
    "i64": 8,
    "c64": 8,
    "f32": 4,
    "i32": 4,
    "f16": 2,
    "bf16": 2,
    "i16": 2,
    "bool": 1,
    "u8": 1,
    "i8": 1,
    "u16": 2,
    "u32": 4,
    "u64": 8,
}


@dataclass(frozen=True)
class Call:
    """What is known of a call of a collective, as the columns of `CollectiveCallTable`; empty: of an unknown group."""

    group: str
    operation: str
    dtype: str
    size_bytes: int


@dataclass(frozen=True)
class CollectiveKernel:
    """What the name of a kernel tells.

    Attributes:
        operation: `all-reduce`; `collective`: the name does not tell which; empty: that of the call above it.
        dtype: Type of the elements; empty: not told.
        is_library: It is of NCCL or RCCL. Compilers name others so (`AllReduceKernelImpl`), and so may anybody: they
            are collectives where the call that launched them is told.
    """

    operation: str
    dtype: str
    is_library: bool


def kernel_of_name(name: str) -> CollectiveKernel | None:
    """What a kernel is that is called so; None: no collective."""
    is_library = _KERNEL.search(name) is not None
    known = _OPERATIONS if is_library else _OF_COMPILERS
    found = next((operation for operation, pattern in known if pattern.search(name)), "")
    if not found and not is_library:
        return None
    dtype = _TYPES.search(name) if is_library else None
    return CollectiveKernel(found or "collective", dtype[1] if dtype else "", is_library)


def call_of_frame(name: str) -> Call | None:
    """What the frame of a call tells; None: it is none."""
    told = _TOLD.fullmatch(name)
    if told is None:
        return None
    operation = next((text for text, pattern in _OPERATIONS if pattern.search(told["name"])), told["name"])
    dtype = told["dtype"] or ""
    size = _BYTES.get(dtype, 0) * int(told["count"] or 0)
    return Call(told["group"] or "", operation, dtype, size or -1)


def operation_of_operator(name: str) -> str:
    """The collective that an operator of PyTorch begins; empty: none, or one between two ranks."""
    called = _OPERATOR.fullmatch(name)
    if called is None:
        return ""
    named = next((operation for operation, pattern in _OPERATIONS if pattern.search(called["name"])), "")
    if named:
        return "" if named == POINT_TO_POINT else named
    return next((each for each in _ALSO_OPERATORS if each in called["name"]), "")
