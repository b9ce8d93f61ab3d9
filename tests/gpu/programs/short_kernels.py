"""Kernels of about 10 us with known traffic of DRAM, for some seconds, each below a scope; prints their bytes.

Arrays take turns, so that none of them is in L2 when it comes again.
"""

from __future__ import annotations

import json
import time

import torch

import bragg

_SECONDS, _LAUNCHES, _ARRAYS, _LONG, _SHORT = 4, 200, 32, 8 << 20, 3 << 20
short = [torch.zeros(_SHORT, device="cuda") for _ in range(_ARRAYS)]
long = [torch.zeros(_LONG, device="cuda") for _ in range(_ARRAYS)]
kernels = {
    "add one": (lambda i: torch.add(short[i], 1, out=short[i - 16]), 4 * _SHORT, 4 * _SHORT),
    "fill": (lambda i: long[i].fill_(1), 0, 4 * _LONG),
    "add two": (lambda i: torch.add(short[i], short[i - 8], out=short[i - 16]), 8 * _SHORT, 4 * _SHORT),
}
end = time.monotonic() + _SECONDS
while time.monotonic() < end:
    for name, (launch, _, _) in kernels.items():
        with bragg.scope(name):
            for number in range(_LAUNCHES):
                launch(number % _ARRAYS)
    torch.cuda.synchronize()
print(json.dumps({name: (read, written) for name, (_, read, written) in kernels.items()}))
