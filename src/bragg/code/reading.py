"""The code that a profile gets when its capture is read: of kernels, and of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from bragg.code.kernel_code import with_kernel_code
from bragg.code.native_names import with_native_names
from bragg.code.program_texts import with_program_texts
from bragg.code.sampled_function import SampledFunction
from bragg.code.sampled_lines import with_lines
from bragg.code.source_place import CallChain
from bragg.model import Profile


class CodeWish(Enum):
    """How much of the code is wanted.

    Attributes:
        LINES: Names of native functions, and the source lines of sampled instructions.
        TEXTS: Also the texts of kernels, which take seconds to collect, and of the program, if the run keeps them.
    """

    LINES = "lines"
    TEXTS = "texts"


def read_code(
    wish: CodeWish, profile: Profile, sampled: Sequence[SampledFunction]
) -> tuple[Profile, Sequence[Mapping[int, CallChain]]]:
    """The profile with its code, and of each sampled function where its instructions come from, by offset in bytes.

    Args:
        wish: How much.
        profile: All else of the capture.
        sampled: The functions; what is not known of one is missing.
    """
    has_texts = wish is CodeWish.TEXTS and profile.run.keeps_code
    if not has_texts:
        return with_lines(with_native_names(profile), sampled)
    found, chains = with_kernel_code(with_native_names(profile), sampled)
    return with_program_texts(found), chains
