"""From a capture to a profile: reader and recorder put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bragg import formats
from bragg.code.kernel_code import with_kernel_code
from bragg.code.native_names import with_native_names
from bragg.code.sampled_function import SampledFunction
from bragg.code.sampled_lines import with_lines
from bragg.code.source_place import CallChain
from bragg.formats import capture as captures
from bragg.model import Profile
from bragg.record.metadata import KEEPS_CODE

__all__ = ["finish", "read"]


def finish(capture: Path, output: Path) -> Profile:
    """Turn a capture into a `.bragg` file, with the texts of its kernels; see `formats.finish`."""
    return formats.finish(capture, output, _read_code)


def read(capture: Path) -> Profile:
    """Read a capture, with source lines but without the texts, which take seconds to collect."""
    return captures.read(capture, read_code=_read_lines)


def _read_code(
    profile: Profile, sampled: Sequence[SampledFunction]
) -> tuple[Profile, Sequence[Mapping[int, CallChain]]]:
    read_code = with_kernel_code if profile.meta.get(KEEPS_CODE, True) else with_lines
    return read_code(with_native_names(profile), sampled)


def _read_lines(
    profile: Profile, sampled: Sequence[SampledFunction]
) -> tuple[Profile, Sequence[Mapping[int, CallChain]]]:
    return with_lines(with_native_names(profile), sampled)
