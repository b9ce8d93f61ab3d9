"""From machine code to source with Triton's own compiler, and NVIDIA's disassembler as the judge."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bragg.analyze.kernel_choice import choose_kernel
from bragg.analyze.source_lines import annotate
from bragg.code.kernel_code import with_kernel_code
from bragg.code.kernel_files import attributes_of
from bragg.code.sass.disassembler import find_disassembler
from bragg.code.source_map import KernelCode, Stage, code_of_kernels
from bragg.code.source_place import user_place
from bragg.model import Profile
from tests.golden.cubins import kernels
from tests.support.profiles import profile_from_text

triton = pytest.importorskip("triton")

SOURCE = Path(kernels.__file__)
LOAD, HELPER, STORE = 21, 22, 23
ARCHITECTURES = (80, 90, 100)


@dataclass(frozen=True)
class Compiled:
    """A softmax for one architecture, as Triton and the profile know it."""

    kernel: Any
    profile: Profile
    code: KernelCode


@pytest.fixture(scope="module", params=ARCHITECTURES, ids="sm_{}".format)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns where it is not set
        signature = {"out": "*fp32", "x": "*fp32", "stride": "i32", "n": "i32", "BLOCK": "constexpr"}
        aligned = {(index,): [["tt.divisibility", 16]] for index in range(3)}
        source = ASTSource(kernels.softmax, signature, {(4,): 1024}, aligned)
        kernel = triton.compile(source, target=GPUTarget("cuda", request.param, 32))
        profile = profile_from_text("root\n  softmax<w4 s3> 9us")
        noted = dict(attributes_of(kernel))
        profile, _ = with_kernel_code(replace(profile, meta={"attributes": {"softmax<w4 s3>": noted}}))
    (code,) = code_of_kernels(profile.sources).values()
    return Compiled(kernel, profile, code)


def test_the_texts_are_those_of_the_compiler(compiled: Compiled) -> None:
    for stage in (Stage.TTIR, Stage.TTGIR, Stage.LLIR, Stage.PTX):
        assert compiled.code.texts[stage] == compiled.kernel.asm[stage.value]
    assert compiled.profile.sources[str(SOURCE)] == SOURCE.read_text()
    assert compiled.profile.meta["kernel_code"] == {}


def test_every_instruction_has_the_file_and_line_that_nvdisasm_shows(compiled: Compiled, tmp_path: Path) -> None:
    cubin = tmp_path / "softmax.cubin"
    cubin.write_bytes(compiled.kernel.asm["cubin"])
    tool = find_disassembler(os.environ)
    assert tool is not None
    shown = subprocess.run([tool, "-g", "-c", cubin], capture_output=True, text=True, check=True).stdout
    expected, place = {}, None
    for line in shown.splitlines():
        if match := re.search(r'//## File "(.+)", line (\d+)', line):
            place = (match[1], int(match[2]))
        elif match := re.match(r"\s*/\*([0-9a-f]{4,})\*/", line):
            expected[int(match[1], 16)] = place
    found = {instruction.offset_bytes: instruction.chain[:1] for instruction in compiled.code.instructions}
    assert found.keys() == expected.keys()
    differ = {
        offset: (chain, expected[offset])
        for offset, chain in found.items()
        if [(place.file, place.line) for place in chain] != [expected[offset]] and expected[offset] is not None
    }
    assert differ == {}


def test_loads_and_stores_come_from_their_lines(compiled: Compiled) -> None:
    lines = {"LDG": set(), "STG": set()}
    for instruction in compiled.code.instructions:
        for opcode, found in lines.items():
            if f"{opcode}.E" in instruction.text:
                found.add(instruction.chain[-1].line)
    assert lines == {"LDG": {LOAD}, "STG": {STORE}}


def test_the_standard_library_is_shown_under_the_line_that_calls_it(compiled: Compiled) -> None:
    library = [i.chain for i in compiled.code.instructions if any("standard.py" in place.file for place in i.chain)]
    assert library
    assert {chain[-1].line for chain in library} == {HELPER, STORE}
    own = [user_place(chain) for chain in library]
    assert {place.file for place in own if place} == {str(SOURCE)}
    assert {place.function for place in own if place} <= {"scale_rows", "softmax"}


def test_all_instructions_of_a_line_are_found_again_in_every_text(compiled: Compiled) -> None:
    code = annotate(compiled.profile, choose_kernel(compiled.profile, None), None)
    softmax = code.sections[0]
    assert softmax.title == f"softmax  {SOURCE}"
    became = {line.number: line.became for line in softmax.lines}
    assert all(became[LOAD][stage] for stage in Stage)
    loads = [compiled.code.lines(Stage.TTGIR)[number - 1] for number in became[LOAD][Stage.TTGIR]]
    assert any("tt.load" in text for text in loads)


def test_a_load_of_ttgir_and_its_instructions_lead_to_each_other(compiled: Compiled) -> None:
    code = compiled.code
    (load,) = [index for index, text in enumerate(code.lines(Stage.TTGIR)) if "tt.load" in text]
    instructions = [index for index, text in enumerate(code.lines(Stage.SASS)) if "LDG.E" in text]
    assert set(instructions) <= set(code.lines_of_lines(Stage.TTGIR, load, Stage.SASS))
    for index in instructions:
        assert load in code.lines_of_lines(Stage.SASS, index, Stage.TTGIR)
        assert any("ld.global" in code.lines(Stage.PTX)[n] for n in code.lines_of_lines(Stage.SASS, index, Stage.PTX))
