"""The sample: the training of a small GPT-2 on an H100, which `tools/sample.py` makes.

Its file is a profile whose members are stored as they are, compressed as a whole: 120 kB, where members that are
compressed one by one take 167 kB.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from bragg import formats
from bragg.model import Profile

__all__ = ["CAN_UNPACK", "SAMPLE", "sample"]

SAMPLE = "sample-h100.bragg"
CAN_UNPACK = find_spec("_lzma") is not None
"""Whether this Python was built with liblzma."""
_PACKED = Path(__file__).with_name(f"{SAMPLE}.xz")


def sample() -> Profile:
    """The profile."""
    import lzma

    with TemporaryDirectory() as directory:
        path = Path(directory, SAMPLE)
        path.write_bytes(lzma.decompress(_PACKED.read_bytes()))
        return formats.load(path)
