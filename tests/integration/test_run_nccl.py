"""What NCCL tells its profiler plug-in, from a fake NCCL of each version of the interface to META, paths and tally."""

from __future__ import annotations

import pytest

from bragg.analyze.ranks.summarize import summarize
from bragg.analyze.tally import tally_of
from bragg.model import Profile
from bragg.model.meta.nccl import Nccl, NcclCall, nccl_of
from bragg.views.text.nccl_facts import nccl_lines
from bragg.views.text.run_facts import RunFacts
from tests.support.fake_gpu_runs import START, Record, Run, kernels

WORK = """
import ctypes
nccl = ctypes.CDLL("libnccl.so.2")
nccl.fake_nccl_init.restype = ctypes.c_void_p
Launch = ctypes.CFUNCTYPE(None)
def communicator(interface, id=0xC0FFEE, name=None, n_ranks=8, rank=3):
    return ctypes.c_void_p(nccl.fake_nccl_init(interface, ctypes.c_uint64(id), name, n_ranks, rank))
def run(comms, function=b"AllReduce", dtype=b"ncclFloat32", root=0, channels=4, calls=1, us=50, kernel=None):
    launch = Launch(lambda: gpu.launch(kernel or f"ncclDevKernel_{function.decode()}_Sum_f32_RING_LL"))
    comms = comms if isinstance(comms, list) else [comms]
    nccl.fake_nccl_run(
        (ctypes.c_void_p * len(comms))(*comms), len(comms), function, dtype, ctypes.c_size_t(1024), root, channels,
        calls, ctypes.c_uint64(us * 1000), None if kernel == "" else launch,
    )
    if kernel != "": gpu.synchronize()
"""
KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@pytest.fixture
def told(record: Record) -> Record:
    """`record`, for programs that call a fake NCCL, with `--nccl`."""

    def run(body: str, **options: object) -> Run:
        return record(body, START + WORK, "--nccl", **options)

    return run


def nccl(profile: Profile) -> Nccl:
    found = nccl_of(profile.meta)
    assert found is not None
    return found


@pytest.mark.parametrize("interface", [4, 5, 6])
def test_a_collective_has_its_communicator_size_way_and_time(told: Record, interface: int) -> None:
    body = f"""
    comm = communicator({interface}, name=b"tp")
    for us in (50, 70, 60): run(comm, us=us)
    """
    profile = told(body).main
    assert nccl(profile).interface == interface
    assert nccl(profile).version == 22809
    assert nccl(profile).calls == (
        NcclCall(
            communicator="tp c0ffee",
            group="tp c0ffee",
            rank=3,
            n_ranks=8,
            operation="all-reduce",
            count=1024,
            dtype="f32",
            size_bytes=4096,
            peer=None,
            algorithm="RING",
            protocol="LL",
            channels=4,
            calls=3,
            timed=3,
            gpu_ns=180_000,
            least_ns=50_000,
            most_ns=70_000,
            last_number=2,
        ),
    )
    assert list(RunFacts(profile.meta).warnings()) == []
    # Before version 5 NCCL tells of a collective when its kernel is launched already.
    above = "" if interface == 4 else "collective allreduce[1024 f32, group tp c0ffee of 8]/"
    assert kernels(profile) == {f"{above}{KERNEL}": 3}
    assert nccl_lines(profile.meta) == [
        "NCCL: 3 operations in 1 group, 180 us on the GPU, 180 us of it "
        "all-reduce[1024 f32, group tp c0ffee of 8], RING LL, 4 channels"
    ]


def test_each_kind_of_call_is_told_and_joined_with_those_of_other_ranks(told: Record) -> None:
    body = """
    tp, dp = communicator(6), communicator(6, id=0xDA7A, n_ranks=2, rank=1)
    run([tp, dp])
    run(tp)
    run(dp, b"ReduceScatter", b"ncclBfloat16")
    run(dp, calls=3, us=20)
    run(dp, b"Send", root=0, channels=2)
    run(tp, b"AllGather", b"ncclInt8", kernel="")
    """
    profile = told(body, data="trace").main
    paths = {path.split("/")[0] for path in kernels(profile)}
    assert paths == {
        "collective allreduce[1024 f32, group c0ffee of 8]",
        "collective allreduce[1024 f32, group da7a of 2]",
        "collective reducescatter[2048 bf16, group da7a of 2]",  # the input of a rank
        "collective allreduce[3072 elements, group da7a of 2]",  # three calls: their bytes are not those of a kernel
        "collective send[1024 f32, group da7a of 2]",
    }
    (section,) = (each for each in tally_of([profile]).sections if each.title == "NCCL")
    assert {row.name: (row.calls, row.total, row.average) for row in section.rows} == {
        "all-reduce[1024 f32, group c0ffee of 8], RING LL, 4 channels": (2, 100_000, 50_000),
        "all-reduce[1024 f32, group da7a of 2], RING LL, 4 channels": (4, 110_000, 27_500),
        "reduce-scatter[2048 bf16, group da7a of 2], RING LL, 4 channels": (1, 50_000, 50_000),
        "send[1024 f32, group da7a of 2] with rank 0, 2 channels": (1, 50_000, 50_000),
        "all-gather[1024 i8, group c0ffee of 8], CE": (1, 0, None),
    }
    assert list(RunFacts(profile.meta).warnings()) == [
        "1 operation of NCCL without time on the GPU: NCCL did not tell when it ended"
    ]
    summary = summarize(profile)
    groups = [summary.calls.group[call] for call in summary.collectives().call.tolist()]
    numbered = sorted(zip(groups, summary.collectives().sequence.tolist(), strict=True))
    assert numbered == [("c0ffee", 0), ("c0ffee", 1), ("da7a", 0), ("da7a", 1), ("da7a", 2)]


def test_a_version_without_the_interface_is_named(told: Record) -> None:
    run = told("run(communicator(3))", NCCL_VERSION=22605)
    assert run.exit_code == 0
    assert nccl(run.main).calls == ()
    (line,) = RunFacts(run.main.meta).warnings()
    assert line == "NCCL told nothing: the program's version is 2.26.5, and 2.27 is the first that does"


def test_without_the_option_nccl_tells_nothing(record: Record) -> None:
    profile = record("run(communicator(5))", START + WORK).main
    assert nccl_of(profile.meta) is None
    assert kernels(profile) == {KERNEL: 1}


def test_a_child_of_a_fork_starts_with_nothing(told: Record) -> None:
    body = """
    import os
    comm = communicator(6)
    run(comm)
    if (pid := os.fork()) == 0:
        run(comm, kernel="")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    run(comm)
    """
    run = told(body)
    assert run.output == "0\n"
    assert [call.calls for call in nccl(run.main).calls] == [2]


def test_a_run_without_a_communicator_says_so_once(told: Record) -> None:
    run = told('gpu.launch("k"); gpu.synchronize()')
    assert "NCCL told nothing: the program made no communicator of NCCL 2.28.9" in run.talk
    assert list(RunFacts(run.main.meta).warnings()) == []
