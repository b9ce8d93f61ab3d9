"""What is switched on in this process."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProfilerFlags", "flags"]


@dataclass
class ProfilerFlags:
    """Switches of the process.

    Attributes:
        profiling_on: A session was started, and not all of them were finalized together since.
        instrumentation_on: Kernels that are compiled get records.
        command_line: The command line started the one session there is; `start` of the script does nothing.
    """

    profiling_on: bool = False
    instrumentation_on: bool = False
    command_line: bool = False


flags = ProfilerFlags()
