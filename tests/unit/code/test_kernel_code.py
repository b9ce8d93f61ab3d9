from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bragg.code import kernel_code
from bragg.code.sampled_function import SampledFunction
from bragg.code.source_map import Stage, code_of_kernels
from bragg.code.source_place import CallChain
from bragg.model import Profile
from tests.support.profiles import profile_from_text

CUBIN = (Path(__file__).parents[2] / "golden" / "cubins" / "triton-3.9-softmax-sm90.cubin").read_bytes()
NO_TOOL = {"PATH": ""}


@pytest.fixture(autouse=True)
def without_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_code, "find_disassembler", lambda environ: environ.get("DISASSEMBLER"))


def compiled(directory: Path, ptx: str = "") -> Path:
    """The files that Triton writes for a kernel; returns the one that describes it."""
    directory.mkdir()
    (directory / "softmax.json").write_text(json.dumps({"name": "softmax", "hash": "0123abcd"}))
    for ending, text in {"ttir": "tt.load", "ttgir": "ttg.load", "llir": "ret void", "ptx": ptx}.items():
        (directory / f"softmax.{ending}").write_text(text)
    (directory / "softmax.cubin").write_bytes(CUBIN)
    return directory / "softmax.json"


def noted(**files: Path) -> Profile:
    """A profile of kernels `a<w4 s3>`, `b<w4 s3>`, …, the first one hottest, with the places of their files."""
    rows = [f"  {name}<w4 s3> {100 - index}us" for index, name in enumerate(files)]
    attributes = {
        f"{name}<w4 s3>": {"code": f"softmax/{name}", "code_files": str(path)} for name, path in reversed(files.items())
    }
    return replace(profile_from_text("\n".join(["root", *rows])), meta={"attributes": attributes})


def with_kernel_code(profile: Profile, environ: Mapping[str, str] = NO_TOOL) -> Profile:
    """The profile with the texts of its kernels, of which none was sampled."""
    return kernel_code.with_kernel_code(profile, [], environ)[0]


def with_sampled_code(profile: Profile, *sampled: SampledFunction) -> tuple[Profile, Sequence[Mapping[int, CallChain]]]:
    return kernel_code.with_kernel_code(profile, sampled, NO_TOOL)


def test_the_texts_of_a_kernel_and_its_source_come_into_the_profile(tmp_path: Path) -> None:
    source = tmp_path / "softmax.py"
    source.write_text("def softmax(x):\n    return x\n")
    ptx = f'.file 1 "{source}"\n' + "\n" * 24 + ".loc 1 2 12\n" + "add;\n" * 300
    profile = with_kernel_code(noted(a=compiled(tmp_path / "a", ptx)))
    assert profile.sources[str(source)] == source.read_text()
    (code,) = code_of_kernels(profile.sources).values()
    assert code.key == "softmax/a"
    assert [stage for stage in Stage if stage in code.texts] == list(Stage)
    assert code.texts[Stage.TTGIR] == "ttg.load"
    places = {instruction.chain for instruction in code.instructions if instruction.chain}
    assert (str(source), 2, 12, "softmax") in {place for chain in places for place in chain}


def test_without_a_disassembler_instructions_are_kept_without_text_and_that_is_said(tmp_path: Path) -> None:
    profile = with_kernel_code(noted(a=compiled(tmp_path / "a")))
    (code,) = code_of_kernels(profile.sources).values()
    assert len(code.instructions) == 208
    assert {instruction.text for instruction in code.instructions} == {""}
    assert profile.meta["kernel_code"] == {"softmax/a": "its instructions have no text: nvdisasm was not found"}


def test_files_that_are_gone_are_told_and_other_kernels_kept(tmp_path: Path) -> None:
    profile = with_kernel_code(noted(a=tmp_path / "gone" / "softmax.json", b=compiled(tmp_path / "b")))
    assert "could not be read" in profile.meta["kernel_code"]["softmax/a"]
    assert list(code_of_kernels(profile.sources)) == ["softmax/b"]


def test_a_stage_that_the_compiler_does_not_have_is_left_out(tmp_path: Path) -> None:
    description = compiled(tmp_path / "a")
    description.with_suffix(".ttir").unlink()
    (code,) = code_of_kernels(with_kernel_code(noted(a=description)).sources).values()
    assert list(code.texts) == [Stage.TTGIR, Stage.LLIR, Stage.PTX, Stage.SASS]


def test_a_damaged_cubin_is_told_and_the_other_texts_kept(tmp_path: Path) -> None:
    description = compiled(tmp_path / "a")
    description.with_suffix(".cubin").write_bytes(CUBIN[:500])
    profile = with_kernel_code(noted(a=description))
    assert "could not be read" in profile.meta["kernel_code"]["softmax/a"]
    (code,) = code_of_kernels(profile.sources).values()
    assert list(code.texts) == [Stage.TTIR, Stage.TTGIR, Stage.LLIR, Stage.PTX]


def test_llir_without_room_is_told_and_the_other_texts_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_code, "_MAX_LLIR_BYTES_IN_ALL", 10)
    profile = with_kernel_code(noted(a=compiled(tmp_path / "a"), b=compiled(tmp_path / "b")))
    first, second = code_of_kernels(profile.sources).values()
    assert (Stage.LLIR in first.texts, Stage.LLIR in second.texts) == (True, False)
    assert Stage.SASS in second.texts
    assert "its LLIR, 0 kB, is left out" in profile.meta["kernel_code"]["softmax/b"]


def test_the_hottest_kernels_are_kept_where_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_code, "_MAX_KERNELS", 1)
    files = {name: compiled(tmp_path / name) for name in ("a", "b")}
    profile = with_kernel_code(noted(**files))
    assert list(code_of_kernels(profile.sources)) == ["softmax/a"]
    assert "most GPU time" in profile.meta["kernel_code"]["softmax/b"]


def test_a_sampled_kernel_of_another_compiler_has_the_code_of_its_cubin() -> None:
    function = SampledFunction("softmax(float*)", "softmax", 0xDF940D43, CUBIN)
    profile, (chains,) = with_sampled_code(profile_from_text("root\n  softmax(float*) 9us"), function)
    (code,) = code_of_kernels(profile.sources).values()
    assert code.key == profile.meta["attributes"]["softmax(float*)"]["code"] == "softmax/df940d43"
    assert list(code.texts) == [Stage.SASS]
    assert [instruction.chain for instruction in code.instructions[:3]] == [chains[offset] for offset in (0, 16, 32)]
    assert chains[0][0].line == 18


def test_one_code_under_two_names_has_one_set_of_texts(tmp_path: Path) -> None:
    without_launch = SampledFunction("softmax", "softmax", 0xDF940D43, CUBIN)
    profile, _ = with_sampled_code(noted(a=compiled(tmp_path / "a")), without_launch)
    assert list(code_of_kernels(profile.sources)) == ["softmax/a"]
    assert profile.meta["attributes"]["softmax"]["code"] == "softmax/a"


def test_what_was_sampled_stands_in_for_files_that_are_gone(tmp_path: Path) -> None:
    function = SampledFunction("a<w4 s3>", "softmax", 1, CUBIN)
    profile, (chains,) = with_sampled_code(noted(a=tmp_path / "gone" / "softmax.json"), function)
    (code,) = code_of_kernels(profile.sources).values()
    assert (code.key, list(code.texts), len(chains)) == ("softmax/a", [Stage.SASS], 208)
    assert "could not be read" in profile.meta["kernel_code"]["softmax/a"]


def test_places_are_those_of_the_files_only_where_their_code_was_sampled(tmp_path: Path) -> None:
    ptx = '.file 1 "/x/other.py"\n' + "\n" * 24 + ".loc 1 2 12\n" + "add;\n" * 300
    own = SampledFunction("a<w4 s3>", "softmax", 1, CUBIN)
    without_lines = own._replace(cubin=b"")
    other = own._replace(cubin=CUBIN.replace(b"kernels.py", b"special.py"), checksum=2)
    _, found = with_sampled_code(noted(a=compiled(tmp_path / "a", ptx)), own, without_lines, other)
    files = [{place.file for chain in chains.values() for place in chain} for chains in found]
    assert "/x/other.py" in files[0]
    assert files[1] == files[0]
    assert "/kernels/special.py" in files[2]


def test_disassembling_ends_when_its_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_code, "_DISASSEMBLY_S", 0.0)
    profile = with_kernel_code(noted(a=compiled(tmp_path / "a")), {"DISASSEMBLER": "/never/run"})
    assert "took too long" in profile.meta["kernel_code"]["softmax/a"]


def test_a_disassembler_that_cannot_run_is_told(tmp_path: Path) -> None:
    profile = with_kernel_code(noted(a=compiled(tmp_path / "a")), {"DISASSEMBLER": str(tmp_path / "missing")})
    assert "its instructions have no text" in profile.meta["kernel_code"]["softmax/a"]


def test_texts_beyond_the_room_for_them_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_code, "_MAX_BYTES", 10)
    profile = with_kernel_code(noted(a=compiled(tmp_path / "a")))
    assert list(profile.sources.values()) == ["tt.load"]
    assert "room" in profile.meta["kernel_code"]["softmax/a"]


def test_a_profile_without_kernels_of_triton_stays_as_it_is() -> None:
    profile = profile_from_text("root\n  copy 3us")
    assert with_kernel_code(profile, NO_TOOL) is profile
