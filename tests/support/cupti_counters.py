"""Asks a real CUPTI, up to 13.1, which of our counters a chip has: no GPU is needed.

`python -m tests.support.cupti_counters DIRECTORY CHIP...` reads a JSON object from stdin: by name of a counter its
alternatives, each a list of metrics. It prints, by chip, the first alternative that it knows of each counter, or null,
and how many passes of PM sampling these take together.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

_PM_SAMPLING = 1


def _library(directory: Path) -> ctypes.CDLL:
    """The CUPTI of a directory, with the libraries beside it that it opens by bare name."""
    for name in ("libnvperf_host.so", "libnvperf_target.so"):
        ctypes.CDLL(str(directory / name), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(next(directory.glob("libcupti.so.1?"))))


def _passes(cupti: ctypes.CDLL, chip: str, metrics: list[str]) -> int | None:
    """How many metrics take together; None: one of them is unknown, and then nothing works any more with this host."""

    def call(function: str, *fields: int) -> ctypes.Array[ctypes.c_uint64]:
        params = (ctypes.c_uint64 * (2 + len(fields)))(
            8 * (2 + len(fields)), 0, *fields
        )  # size, a free pointer, fields
        if result := getattr(cupti, function)(params):
            raise ValueError(f"{function} returned {result}")
        return params

    name = ctypes.create_string_buffer(chip.encode())
    names = (ctypes.c_char_p * len(metrics))(*(each.encode() for each in metrics))
    host = call("cuptiProfilerHostInitialize", _PM_SAMPLING, ctypes.addressof(name), 0, 0)[5]
    try:
        call("cuptiProfilerHostConfigAddMetrics", host, ctypes.addressof(names), len(metrics))
    except ValueError:
        return None
    else:
        size = call("cuptiProfilerHostGetConfigImageSize", host, 0)[3]
        image = ctypes.create_string_buffer(size)
        call("cuptiProfilerHostGetConfigImage", host, size, ctypes.addressof(image))
        return int(call("cuptiProfilerHostGetNumOfPasses", size, ctypes.addressof(image), 0)[4])
    finally:
        call("cuptiProfilerHostDeinitialize", host)


def _main(directory: str, *chips: str) -> None:
    cupti = _library(Path(directory))
    counters: dict[str, list[list[str]]] = json.load(sys.stdin)
    told = {}
    for chip in chips:
        chosen = {
            name: next((metrics for metrics in alternatives if _passes(cupti, chip, metrics)), None)
            for name, alternatives in counters.items()
        }
        all_metrics = [metric for metrics in chosen.values() for metric in metrics or ()]
        told[chip] = {"chosen": chosen, "passes": _passes(cupti, chip, all_metrics)}
    print(json.dumps(told))


if __name__ == "__main__":
    _main(*sys.argv[1:])
