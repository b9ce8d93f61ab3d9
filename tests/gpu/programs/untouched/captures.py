"""Captures CUDA graphs while another thread records; prints how many are right."""

import contextlib
import sys
import threading
import time

import torch

mode, recorder = sys.argv[1:]
x = torch.randn(256, 256, device="cuda")
x @ x  # cuBLAS allocates at its first use, which a capture forbids
torch.cuda.synchronize()
stop = threading.Event()


def control() -> None:
    if recorder == "bragg":
        import bragg
        import bragg.errors
    number = 0
    while not stop.is_set():
        with contextlib.ExitStack() as stack:
            if recorder == "bragg":
                stack.enter_context(contextlib.suppress(bragg.errors.NothingRecorded))
                stack.enter_context(bragg.profile(f"within{number}.bragg"))
            time.sleep(0.01)
        number += 1


thread = threading.Thread(target=control, daemon=True)
thread.start()
right = 0
for _ in range(12):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode=mode):
        z = x @ x
        for _ in range(20):
            z = z + x
            time.sleep(0.002)
    z.zero_()
    graph.replay()
    torch.cuda.synchronize()
    right += bool((z - (x @ x + 20 * x)).abs().max() < 1e-2)
stop.set()
thread.join()
print("right", right)
