"""Ranks of torchrun with a communicator of their own, made by NCCL's C functions as vLLM does; no operator names it.

Each rank sums 20 times, exchanges messages in a group, and with the argument `graph` replays a captured sum 10 times.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import torch
from torch import distributed

N_SUMS, N_REPLAYS, COUNT = 20, 10, 1 << 20
FLOAT32, SUM = 7, 0


class UniqueId(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_byte * 128),)


def library() -> ctypes.CDLL:
    """PyTorch's own NCCL."""
    places = [path for entry in sys.path for path in Path(entry).glob("nvidia/*/lib/libnccl.so.2")]
    return ctypes.CDLL(str(places[0]) if places else "libnccl.so.2")


def must(result: int) -> None:
    if result != 0:
        raise RuntimeError(f"NCCL returned {result}")


def communicator(nccl: ctypes.CDLL) -> ctypes.c_void_p:
    """One of all ranks, which tell each other its id over gloo."""
    unique, comm = UniqueId(), ctypes.c_void_p()
    if distributed.get_rank() == 0:
        must(nccl.ncclGetUniqueId(ctypes.byref(unique)))
    told = [bytes(unique)]
    distributed.broadcast_object_list(told)
    ctypes.memmove(ctypes.byref(unique), told[0], 128)
    nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
    must(nccl.ncclCommInitRank(ctypes.byref(comm), distributed.get_world_size(), unique, distributed.get_rank()))
    return comm


def main() -> None:
    distributed.init_process_group("gloo")
    rank, n_ranks = distributed.get_rank(), distributed.get_world_size()
    torch.cuda.set_device(rank)
    nccl = library()
    comm = communicator(nccl)
    x, y = torch.ones(COUNT, device="cuda"), torch.zeros(COUNT, device="cuda")
    count, sent, received = ctypes.c_size_t(COUNT), ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr())

    def stream() -> ctypes.c_void_p:
        return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def add_up() -> None:
        must(nccl.ncclAllReduce(sent, received, count, FLOAT32, SUM, comm, stream()))

    for _ in range(N_SUMS):
        add_up()
    must(nccl.ncclGroupStart())
    must(nccl.ncclSend(sent, count, FLOAT32, (rank + 1) % n_ranks, comm, stream()))
    must(nccl.ncclRecv(received, count, FLOAT32, (rank - 1) % n_ranks, comm, stream()))
    must(nccl.ncclGroupEnd())
    torch.cuda.synchronize()
    if sys.argv[1:] == ["graph"]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            add_up()
        for _ in range(N_REPLAYS):
            graph.replay()
        torch.cuda.synchronize()
        del graph  # a communicator that a graph still uses is not destroyed
    must(nccl.ncclCommDestroy(comm))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
