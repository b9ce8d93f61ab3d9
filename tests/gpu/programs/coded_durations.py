"""Eight threads on four streams of each GPU: the duration of every kernel says in which scope it was launched."""

from __future__ import annotations

import threading

import torch

import bragg

THREADS, STREAMS, LAUNCHES = 8, 4, 50
SHORTEST_CYCLES, STEP = 100_000, 1.045  # 50 us to 0.8 ms: far apart beside what clocks vary

gpus = torch.cuda.device_count()
streams = [[torch.cuda.Stream(gpu) for _ in range(STREAMS)] for gpu in range(gpus)]


def work(thread: int) -> None:
    for _ in range(LAUNCHES):
        for gpu in range(gpus):
            for number, stream in enumerate(streams[gpu]):
                code = (gpu * STREAMS + number) * THREADS + thread
                with bragg.scope(f"code {code} gpu {gpu}"), torch.cuda.stream(stream):
                    torch.cuda._sleep(int(SHORTEST_CYCLES * STEP**code))


threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for gpu in range(gpus):
    torch.cuda.synchronize(gpu)
