"""What the events of Chrome traces stand for, by who wrote them: PyTorch's profiler, JAX, py-spy, VizTracer, bragg."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bragg.model import FrameKind

# Categories of Kineto, and the names of bragg's own frame kinds.
_KINDS = {
    **{kind.name.lower(): kind for kind in FrameKind if kind is not FrameKind.ROOT},
    "cpu_op": FrameKind.OPERATOR,
    "cuda_driver": FrameKind.GPU_API,
    "cuda_runtime": FrameKind.GPU_API,
    "gpu_memcpy": FrameKind.MEMORY,
    "gpu_memset": FrameKind.MEMORY,
    "gpu_user_annotation": FrameKind.MARKER,
    "overhead": FrameKind.STATE,
    "privateuse1_driver": FrameKind.GPU_API,
    "privateuse1_runtime": FrameKind.GPU_API,
    "python_function": FrameKind.NATIVE,
    "Trace": FrameKind.MARKER,
}
# `train.py(12): step` of PyTorch, `$train.py:12 step` of JAX, `step (train.py:12)` of VizTracer, and bragg's own.
_CODE = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"(?P<file>[^()]+)\((?P<line>\d{1,9})\): (?P<name>.+)",
        r"\$(?P<file>[^ ]+):(?P<line>\d{1,9}) (?P<name>.+)",
        r"(?P<name>[^ ]+) \((?P<file>[^()]+\.py):(?P<line>\d{1,9})\)",
        r"(?P<file>.+):(?P<line>\d{1,9})@(?P<name>.+)",
    )
)
# Methods are named with the object that they were called on, another one in each call.
_ADDRESS = re.compile(r" object at 0x[0-9a-f]+")
_CODE_CATEGORIES = ("", "python", "native", "line", "python_function", "FEE")
# Types of elements, as PyTorch names them, and as bragg does.
_ELEMENTS = {
    "Bool": "bool",
    "Byte": "u8",
    "Char": "i8",
    "Short": "i16",
    "Int": "i32",
    "Long": "i64",
    "Half": "f16",
    "BFloat16": "bf16",
    "Float": "f32",
    "Double": "f64",
    "Float8_e4m3fn": "f8e4m3",
    "Float8_e5m2": "f8e5m2",
}
# JAX names no categories.
_GPU_CALL = re.compile(r"(?:cu|cuda|hip)[A-Z]\w+")
_GPU_PROCESS = re.compile(r"/device:(?:GPU|TPU|ROCM):(\d{1,4})|.*: GPU (\d{1,4})$")
_GPU_LANE = re.compile(r"Stream #|GPU \d+ stream |GPU stream ")


def frame_of(category: str, name: str, arguments: Mapping[str, Any]) -> tuple[FrameKind, str, str, int]:
    """Kind, name, file and line of an event.

    Args:
        category: `cat` of the event; empty where it has none.
        name: Its name.
        arguments: Its `args`.
    """
    if category == "python_function" and name.startswith("nn.Module: "):
        return FrameKind.SCOPE, name.removeprefix("nn.Module: "), "", 0
    if category == "python_function":
        name = _ADDRESS.sub("", name)
    if category in _CODE_CATEGORIES:
        for pattern in _CODE:
            if code := pattern.fullmatch(name):
                kind = _KINDS[category] if category in ("native", "line") else FrameKind.PYTHON
                return kind, code["name"], code["file"], int(code["line"])
    file = arguments.get("filename")
    if category == "py-spy" and isinstance(file, str):
        return FrameKind.PYTHON, name, file, whole_number(arguments.get("line"), 2**31)
    if not category and _GPU_CALL.fullmatch(name):
        return FrameKind.GPU_API, name, "", 0
    return _KINDS.get(category, FrameKind.SCOPE), name, "", 0


def collective_name(name: str, arguments: Mapping[str, Any]) -> str:
    """The name of an event; of a collective of PyTorch what `bragg run` calls it, with its size and process group."""
    collective, group = arguments.get("Collective name"), arguments.get("Process Group Name")
    if name != "record_param_comms" or not isinstance(collective, str) or not isinstance(group, str):
        return name
    count, size = whole_number(arguments.get("In msg nelems")), whole_number(arguments.get("Group size"))
    dtype = _ELEMENTS.get(str(arguments.get("dtype")), "elements")
    return f"collective {collective.strip('_')}[{count} {dtype}, group {group} of {size}]"


def device_lane(process: str, lane: str) -> tuple[int, bool]:
    """The device of a process, -1 for the host, and whether a lane of it shows what ran.

    JAX shows the modules and operators that the work of a device belongs to in further lanes of that device.
    """
    device = _GPU_PROCESS.match(process)
    if device is None:
        return -1, False
    return int(device[1] or device[2]), _GPU_LANE.match(lane) is not None


def whole_number(value: Any, limit: int = 1 << 62) -> int:
    """A number of an event, also one that is written as text; 0 for anything else or beyond the limit."""
    if isinstance(value, str) and len(value) < 20 and value.isascii() and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit else 0
