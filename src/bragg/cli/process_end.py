"""Ending this process the way another one ended."""

from __future__ import annotations

import os
import signal
import sys


def end_like(exit_code: int) -> int:
    """End by the signal that ended the target, so that the caller sees the same; else return its exit code.

    Args:
        exit_code: As `subprocess` gives it: negative for a signal.

    Returns:
        The exit code; for a signal that does not end this process, 128 and its number, as shells say it.
    """
    if exit_code >= 0:
        return exit_code
    import resource  # Only Unix has it, and signals that end a process.

    number = -exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    # The target has left a core dump if one was wanted; a second one, of bragg, would only mislead.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    return 128 + number
