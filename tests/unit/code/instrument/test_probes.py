"""PTX with probes: ptxas takes it, and the sites are those of the source."""

from __future__ import annotations

import os

import pytest

from bragg.code.instrument.assembling import assemble, find_ptxas, target_of
from bragg.code.instrument.blocks import read_kernel
from bragg.code.instrument.probes import FloatType, Probe, Probed, add_probes
from bragg.code.instrument.rewriting import CONTROL
from bragg.code.instrument.stored_types import stored_types

triton = pytest.importorskip("triton")

from tests.support.timed_kernels import compiled, line_of  # noqa: E402


def probed(name: str, *wanted: Probe) -> Probed:
    kernel = compiled(name)
    return add_probes(read_kernel(kernel.asm["ptx"]), wanted or list(Probe), stored_types(kernel.asm["ttgir"]))


@pytest.mark.parametrize("name", ["copy", "softmax", "matmul", "matmul_tma", "attention", "attention80"])
def test_ptxas_takes_it(name: str) -> None:
    text = probed(name).text
    binary = assemble(find_ptxas(triton, target_of(text), os.environ), text, [], 60)
    assert CONTROL.encode() in binary.cubin


def test_sites_are_at_the_lines_of_the_source() -> None:
    line = line_of("softmax", "tl.store")
    found = {(site.probe, site.does, site.place[-1].line, site.access_bytes) for site in probed("softmax").sites}
    loops = [line_of("softmax", "for start"), line_of("softmax", "top = tl.max") + 2]
    assert {each for each in found if each[0] is Probe.BRANCHES and "loop" in each[1]} == {
        (Probe.BRANCHES, "another turn of the loop", each, 0) for each in loops
    }
    assert (Probe.ACCESSES, "stores", line, 16) in found
    assert (Probe.VALUES, "stores", line, 0) in found
    assert (Probe.ACCESSES, "loads", loops[0] + 2, 16) in found


def test_only_what_is_wanted_is_counted() -> None:
    assert {site.probe for site in probed("softmax", Probe.BRANCHES).sites} == {Probe.BRANCHES}
    assert "match.any" not in probed("softmax", Probe.BRANCHES).text
    with pytest.raises(ValueError, match="nothing of what is counted"):
        probed("matmul_tma", Probe.ACCESSES)


def test_the_types_of_stores_are_those_of_their_pointers() -> None:
    assert stored_types(compiled("softmax").asm["ttgir"]) == {line_of("softmax", "tl.store"): FloatType.F16}
    assert stored_types(compiled("copy").asm["ttgir"]) == {line_of("copy", "tl.store"): FloatType.F32}


def test_a_copy_of_nothing_is_no_access() -> None:
    text = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry one()
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 16 ], 0x10, %r2;
	ret;
}
"""
    found = add_probes(read_kernel(text), [Probe.ACCESSES], {})
    (site,) = found.sites
    assert (site.does, site.access_bytes) == ("copies to shared memory", 16)
    assert "setp.ne.u32 %bragg_p, %r2, 0;" in found.text
    assert "add.s64 %bragg_d3, %rd1, 16;" in found.text
