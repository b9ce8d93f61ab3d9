r"""Arrays as `.npy` bytes, format version 1.0, read without trust.

 0  "\x93NUMPY"   6  u8 1   7  u8 0   8  u16 header_bytes
10  header: "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }", spaces, "\n"; data follows at a multiple of 64
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import DTypeLike, NDArray

ARCHIVE_DAMAGE = (
    *(BadZipFile, zlib.error, struct.error, EOFError, LookupError, NotImplementedError),
    *(OverflowError, RuntimeError, TypeError, ValueError),
)
"""What zipfile, zlib, json and numpy raise on damaged input."""

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '([^']+)', 'fortran_order': False, 'shape': \(([0-9]+),( [0-9]+)?\), \} *\n")


def encode(values: NDArray[Any]) -> bytes:
    """An array, [rows] or [rows, columns] of any type, as a file that `numpy.load` reads."""
    header = f"{{'descr': '{values.dtype.str}', 'fortran_order': False, 'shape': {values.shape}, }}".encode()
    header += b" " * (-(len(_MAGIC) + 2 + len(header) + 1) % 64) + b"\n"
    return _MAGIC + len(header).to_bytes(2, "little") + header + values.tobytes()


def decode(content: bytes, dtypes: tuple[DTypeLike, ...]) -> NDArray[Any]:
    """A view of the data, of the type and [shape] in its header: a wrong one cannot make memory be allocated.

    Args:
        content: The file.
        dtypes: The types that are expected.

    Raises:
        ValueError: The bytes are no such array.
    """
    begin = len(_MAGIC) + 2
    end = begin + int.from_bytes(content[len(_MAGIC) : begin], "little")
    header = _HEADER.fullmatch(content, begin, end)
    if not content.startswith(_MAGIC) or header is None:
        raise ValueError("no npy array")
    known = {np.dtype(dtype).str.encode(): np.dtype(dtype) for dtype in dtypes}
    if header[1] not in known:
        raise ValueError(f"an array of type {header[1].decode(errors='replace')} was not expected")
    shape = tuple(int(length) for length in header.groups()[1:] if length is not None)
    return np.frombuffer(content, known[header[1]], offset=end).reshape(shape)
