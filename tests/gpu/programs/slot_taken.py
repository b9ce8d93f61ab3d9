"""Holds the only CUPTI subscription, as another profiler would, and then tries to record. Prints what bragg says."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch

import bragg

torch.zeros(1, device="cuda")
mapped = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
cupti = ctypes.CDLL(next(path for path in mapped if Path(path).name.startswith("libcupti.so")))
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)
subscriber = ctypes.c_void_p()
assert cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None) == 0
session = bragg.start("slot.bragg", backend="cuda")
with bragg.scope("work"):
    torch.zeros(1, device="cuda")
print(bragg.stop(session).meta["cuda"]["reason"])
