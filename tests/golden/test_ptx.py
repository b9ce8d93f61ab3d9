"""Clocks and probes go into the PTX of each version of Triton."""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path

import pytest

from bragg.code.instrument.assembling import assemble, find_ptxas, target_of
from bragg.code.instrument.blocks import Activity, Kernel, read_kernel
from bragg.code.instrument.probes import Probe, add_probes
from bragg.code.instrument.rewriting import instrument, plain_code
from bragg.code.instrument.segments import Activities, Scopes
from bragg.code.instrument.storing import IN_GLOBAL_MEMORY, SharedMemory, Store

FILES = sorted((Path(__file__).parent / "ptx").glob("*.json.gz"))
every_version = pytest.mark.parametrize("version", [file.name.removesuffix(".json.gz") for file in FILES])
EVERYTHING, WAITS = (
    Activities(frozenset(wanted)) for wanted in (Activity, [each for each in Activity if each.is_wait])
)


@cache
def texts(version: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(gzip.decompress((FILES[0].parent / f"{version}.json.gz").read_bytes()))
    return found


def activities(kernel: Kernel, *, in_loop: bool = True) -> set[Activity]:
    blocks = [block for block in kernel.blocks if block.in_loop or not in_loop]
    return {each.activity for block in blocks for each in block.statements if each.activity is not None}


def test_all_supported_versions_are_there() -> None:
    assert [file.name.removesuffix(".json.gz") for file in FILES] == ["3.4", "3.5", "3.6", "3.7", "3.8", "3.9"]


@every_version
def test_what_kernels_wait_for_and_begin_is_found(version: str) -> None:
    kernels = {name: read_kernel(text) for name, text in texts(version).items()}
    assert activities(kernels["copy.90"], in_loop=False) == {Activity.LOAD, Activity.STORE}
    assert {Activity.LOAD, Activity.STORE} <= activities(kernels["softmax.90"])
    pipeline = {Activity.COPY, Activity.COPY_WAIT, Activity.MMA}
    assert pipeline <= activities(kernels["matmul.80"])
    assert pipeline | {Activity.MMA_WAIT} <= activities(kernels["matmul.90"])
    assert {Activity.TMA_LOAD, Activity.BARRIER_WAIT, Activity.MMA, Activity.MMA_WAIT} <= activities(
        kernels["matmul_tma.90"]
    )
    assert {Activity.TMA_LOAD, Activity.BARRIER_WAIT, Activity.MMA} <= activities(kernels["matmul_tma.100"])


@every_version
def test_nothing_of_the_program_changes(version: str) -> None:
    for text in texts(version).values():
        kernel = read_kernel(text)
        timed = instrument(kernel, EVERYTHING)
        assert timed.frames
        assert [line for line in timed.text.splitlines() if "bragg_" not in line] == text.splitlines()
        probed = add_probes(kernel, list(Probe), {}).text.partition("$L__bragg_plain:")[0]
        body = [line for line in probed.splitlines() if "bragg_" not in line]
        assert body == text.splitlines()[: len(body)]


@every_version
@pytest.mark.parametrize("name", ["matmul_valued.90", "matmul_valued.100"])
def test_values_of_scopes_are_found(version: str, name: str) -> None:
    if version == "3.4":
        assert name not in texts(version)  # it does not evaluate what `with` is given
        return
    kernel = read_kernel(texts(version)[name])
    given = {
        (each.place[-1].line, each.value.type) for block in kernel.blocks for each in block.statements if each.value
    }
    first = min(line for line, _ in given)
    assert given == {(first, "i32"), (first + 3, "f32"), (first + 5, "i32")}
    scopes = Scopes({}, {first: "load", first + 3: "multiply", first + 5: "store"}, "/home/me/timed_kernels.py")
    timed = instrument(kernel, scopes)
    found = [each for frame in timed.frames for each in frame.values]
    assert {each.scope for each in found} == {"load", "multiply", "store"}
    assert all(f", {each.value.register}" in timed.text for each in found)


@every_version
@pytest.mark.parametrize("name", ["matmul.80", "matmul_tma.90", "matmul_tma.100"])
@pytest.mark.parametrize("store", [IN_GLOBAL_MEMORY, SharedMemory(4, 2048)], ids=["global", "shared"])
def test_ptxas_takes_it(version: str, name: str, store: Store) -> None:
    triton = pytest.importorskip("triton")
    kernel = read_kernel(texts(version)[name])
    timed = instrument(kernel, WAITS, plain_code(kernel), store)
    ptxas = find_ptxas(triton, target_of(timed.text), os.environ)
    try:
        assert assemble(ptxas, timed.text, [], 60).cubin[:4] == b"\x7fELF"
    except ValueError as error:
        if "Unsupported .version" not in str(error):
            raise
        pytest.skip(f"this ptxas is older: {error}")
