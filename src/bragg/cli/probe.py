"""Tries the native core, CUPTI and PyTorch in a process of its own, which may crash.

Printed as JSON, a line for each step that was survived: `{"core": path}`, then what CUPTI, NVML and NCCL said, then
what keeps PyTorch's operators from being observed (`{"torch_operators": ""}`: nothing does).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import ChainMap
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bragg.views.text.units import signal_name

# Initialising 8 GPUs and importing PyTorch take about 5 s each; more means that the driver hangs.
_TIMEOUT_S = 15.0


COUNTERS = "counters"
"""Argument of the process that lists hardware counters instead."""


class ProbeProcess:
    """The child process; it works from its construction on.

    Args:
        arguments: Of the process.
    """

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "bragg.cli.probe", *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self, timeout_s: float = _TIMEOUT_S) -> dict[str, Any]:
        """What the steps said, as one object; `error` says why there was no next one."""
        try:
            output, errors = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            output, _ = self._process.communicate()
            errors = f"no answer within {timeout_s:g} s"
        steps = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        if self._process.returncode:
            steps.append({"error": self._reason(errors)})
        return dict(ChainMap(*steps))

    def _reason(self, errors: str) -> str:
        code = self._process.returncode
        last_line = errors.strip().rpartition("\n")[2]
        if code > 0 or code == -signal.SIGKILL:
            return last_line or f"exit code {code}"
        return f"the process was ended by {signal_name(-code)}"


def _main() -> None:
    from bragg.cli.checks.nccl import nccl_state
    from bragg.cli.checks.nvml import nvml_state
    from bragg.errors import BackendUnavailable

    try:
        from bragg.core import core
    except BackendUnavailable as error:
        sys.exit(error.message)
    from bragg.record.backends import choose_backend
    from bragg.record.hooks.torch.operators import refusal_of_observers

    print(json.dumps({"core": core.library_path()}), flush=True)
    candidates = choose_backend("cuda", os.environ).library_candidates(os.environ, sys.path)
    print(json.dumps({"candidates": candidates}), flush=True)
    if COUNTERS in sys.argv[1:]:
        print(json.dumps({"counters": core.list_counters(candidates)}), flush=True)
        return
    print(json.dumps(core.probe_cuda(candidates)), flush=True)
    print(json.dumps({"nvml": nvml_state()}), flush=True)
    print(json.dumps({"nccl": nccl_state()}), flush=True)
    if find_spec("torch") is not None:
        refusal = refusal_of_observers(import_module("torch"))
        print(json.dumps({"torch_operators": refusal}), flush=True)


if __name__ == "__main__":
    _main()
