"""Source lines of sampled instructions, from the line table of their cubin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bragg.code.cubin import Cubin
from bragg.code.sampled_function import SampledFunction
from bragg.code.source_place import CallChain
from bragg.model import Profile


def with_lines(
    profile: Profile, sampled: Sequence[SampledFunction]
) -> tuple[Profile, Sequence[Mapping[int, CallChain]]]:
    """The profile as it is, and where the instructions of each function come from, by offset in bytes."""
    return profile, [chains_of(function) for function in sampled]


def chains_of(function: SampledFunction) -> dict[int, CallChain]:
    """Where its instructions come from, by offset in bytes; empty when its cubin is missing or cannot be read."""
    if not function.cubin:
        return {}
    try:
        code = Cubin.of(function.cubin).code(function.symbol, {}, "")
    except ValueError:  # damaged; or the driver has added the function
        return {}
    return {instruction.offset_bytes: instruction.chain for instruction in code}
