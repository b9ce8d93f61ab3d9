"""Two ranks with a communicator of their own, made by NCCL's C functions as vLLM makes one; no operator names it.

Each rank sums 20 times in the default stream, exchanges messages in a group, and replays a captured sum 10 times.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import multiprocessing

N_SUMS, N_REPLAYS, COUNT = 20, 10, 1 << 20
FLOAT32, SUM = 7, 0


class UniqueId(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_byte * 128),)


def library() -> ctypes.CDLL:
    """PyTorch's own NCCL."""
    places = [path for entry in sys.path for path in Path(entry).glob("nvidia/*/lib/libnccl.so.2")]
    return ctypes.CDLL(str(places[0]) if places else "libnccl.so.2")


def communicate(rank: int, directory: str) -> None:
    torch.cuda.set_device(rank)
    nccl = library()
    nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
    unique, meeting = UniqueId(), Path(directory, "id")
    if rank == 0:
        must(nccl.ncclGetUniqueId(ctypes.byref(unique)))
        meeting.with_suffix(".new").write_bytes(bytes(unique))
        meeting.with_suffix(".new").rename(meeting)
    while not meeting.exists():
        time.sleep(0.01)
    ctypes.memmove(ctypes.byref(unique), meeting.read_bytes(), 128)
    comm = ctypes.c_void_p()
    must(nccl.ncclCommInitRank(ctypes.byref(comm), 2, unique, rank))
    x = torch.ones(COUNT, device="cuda")
    y = torch.zeros(COUNT, device="cuda")

    def of(tensor: torch.Tensor) -> ctypes.c_void_p:
        return ctypes.c_void_p(tensor.data_ptr())

    def stream() -> ctypes.c_void_p:
        return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def reduce() -> None:
        must(nccl.ncclAllReduce(of(x), of(y), ctypes.c_size_t(COUNT), FLOAT32, SUM, comm, stream()))

    for _ in range(N_SUMS):
        reduce()
    must(nccl.ncclGroupStart())
    must(nccl.ncclSend(of(x), ctypes.c_size_t(COUNT), FLOAT32, 1 - rank, comm, stream()))
    must(nccl.ncclRecv(of(y), ctypes.c_size_t(COUNT), FLOAT32, 1 - rank, comm, stream()))
    must(nccl.ncclGroupEnd())
    torch.cuda.synchronize()
    if sys.argv[1:] == ["graph"]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            reduce()
        for _ in range(N_REPLAYS):
            graph.replay()
        torch.cuda.synchronize()
    must(nccl.ncclCommDestroy(comm))


def must(result: int) -> None:
    if result != 0:
        raise RuntimeError(f"NCCL returned {result}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        multiprocessing.spawn(communicate, (directory,), nprocs=2)
