"""Records metric values in GPU memory; prints, in ms, how long recording took while a kernel ran, and that kernel."""

import threading
import time

import torch

import bragg

DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
STREAMS, ROUNDS = 4, 1000


def record(**metrics: object) -> None:
    with bragg.scope("values", metrics):
        pass


def dtypes() -> None:
    for name in DTYPES:
        numbers = torch.tensor([1.5, 2.0, 0.0, 4.0]).to(getattr(torch, name)).cuda()
        record(**{f"{name} scalar": numbers[0], f"{name} strided": numbers.reshape(2, 2)[:, 1]})


def while_a_kernel_runs() -> None:
    loss = torch.full((), 0.75, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)
    start = time.perf_counter()
    record(loss=loss)
    recorded = time.perf_counter()
    torch.cuda.synchronize()
    print(f"{1e3 * (recorded - start):.3f} {1e3 * (time.perf_counter() - start):.3f}")


def freed_at_once() -> None:
    torch.cuda._sleep(100_000_000)
    for i in range(500):
        value = torch.full((), float(i), device="cuda")
        record(freed=value)
        del value
        torch.full((), -1e9, device="cuda")


def on_streams() -> None:
    def work(first: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            value = torch.full((), first, dtype=torch.int64, device="cuda")
            for _ in range(ROUNDS):
                record(streams=value)
                value.add_(1)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(STREAMS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def captured() -> None:
    value = torch.zeros((), device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), bragg.scope("capture"):
        value.add_(1)
        record(replayed=value)
    value.zero_()
    for place, count in (("first", 100), ("second", 10)):
        with bragg.scope(place):
            for _ in range(count):
                graph.replay()


def flood() -> None:
    ones = torch.ones(4096, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(50):
            record(flood=ones)
    for _ in range(100):
        graph.replay()


torch.zeros(1, device="cuda")
while_a_kernel_runs()
dtypes()
freed_at_once()
on_streams()
captured()
flood()
torch.cuda.synchronize()
