"""Resident memory over 10 million launches, on the fake driver and its virtual clock: no GPU needed.

A million launches a second, faster than a real driver takes them, in scopes of a thousand. The same program is also run
without bragg, since the fakes live in the process too. Build the fakes with `make native-test`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import harness

LAUNCHES = 10_000_000
LAUNCHES_PER_SECOND = 1_000_000
LAUNCHES_PER_SCOPE = 1_000
SAMPLES = 10


class FakeGpu:
    """A program's side of the fake driver: one context, one kernel."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL(str(harness.FAKES / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
        context, module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._call("cuCtxSetCurrent", context)
        self._call("cuModuleLoadData", ctypes.byref(module), b"")
        self._call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"kernel")

    def launch(self, count: int) -> None:
        """Launch the kernel that often."""
        self._call("bragg_fake_launch_many", self.kernel, None, ctypes.c_uint64(count))

    def synchronize(self) -> None:
        """Wait for the virtual device."""
        self._call("cuCtxSynchronize")

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._driver, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function} failed with CUDA error {status}")


def resident_mb() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def launch_all(gpu: FakeGpu, scope: Any) -> list[float]:
    """Resident memory, MB, after each tenth of the launches."""
    resident = []
    begin = time.monotonic()
    for launched in range(0, LAUNCHES, LAUNCHES_PER_SCOPE):
        context: AbstractContextManager[Any] = scope("step")
        with context:
            gpu.launch(LAUNCHES_PER_SCOPE)
        time.sleep(max(0.0, begin + launched / LAUNCHES_PER_SECOND - time.monotonic()))
        if (launched + LAUNCHES_PER_SCOPE) % (LAUNCHES // SAMPLES) == 0:
            resident.append(round(resident_mb(), 1))
    gpu.synchronize()
    return resident


def without_bragg() -> dict[str, Any]:
    """The fakes alone."""
    return _growth(launch_all(FakeGpu(), nullcontext))


def with_bragg() -> dict[str, Any]:
    """The same, recorded with Python call paths; every launch must be there."""
    import bragg

    gpu = FakeGpu()
    with tempfile.TemporaryDirectory() as directory:
        session = bragg.start(f"{directory}/run.bragg", backend="cuda", context="python")
        resident = launch_all(gpu, bragg.scope)
        captures = sum(path.stat().st_size for path in Path(directory).iterdir())
        profile = bragg.stop(session)
    recorded = int(profile.total("gpu_count"))
    if recorded != LAUNCHES:
        raise RuntimeError(f"{recorded} of {LAUNCHES} launches were recorded: {profile.meta.get('statistics')}")
    return {**_growth(resident), "recorded": recorded, "capture_mb": round(captures / 1e6, 3)}


def _growth(resident: list[float]) -> dict[str, Any]:
    # The first tenth fills pools and caches; what comes after it must be flat.
    return {"resident_mb": resident, "growth_mb": round(resident[-1] - resident[0], 1)}


CHILDREN = {"without bragg": without_bragg, "with bragg": with_bragg}


def main() -> None:
    """Run one program (as a child) or both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--child", choices=CHILDREN)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(CHILDREN[arguments.child]()))
        return
    # Shorter than the 800 ns of a launch: a real driver lets the device fall behind by a thousand launches at most.
    os.environ["BRAGG_FAKE_KERNEL_NS"] = "500"
    os.environ["BRAGG_CUPTI_DIR"] = str(harness.FAKES)
    os.environ["LD_LIBRARY_PATH"] = f"{harness.FAKES}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    rows = [{"program": name, **harness.in_child([__file__, "--child", name], timeout_s=100)} for name in CHILDREN]
    harness.report("memory_growth", rows, arguments.out)


if __name__ == "__main__":
    main()
