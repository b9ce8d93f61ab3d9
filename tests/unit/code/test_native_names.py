from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bragg.code.native_names import with_native_names
from bragg.model import FrameKind, Profile
from tests.support.profiles import profile_from_text
from tests.unit.code.test_elf_symbols import ALPHA, FUNCTION, GLOBAL, elf


def native_profile(file: str, build_id: str = "abcd", path: str | None = None) -> Profile:
    """Two functions of one file, `0x100` above a kernel, and another one."""
    profile = profile_from_text("root\n  0x100\n    matmul 3us\n  0x200\n    matmul 4us")
    frames = profile.tree.frames
    is_offset = [name.startswith("0x") for name in frames.name]
    kinds = [FrameKind.NATIVE if each else kind for each, kind in zip(is_offset, frames.kind, strict=True)]
    files = [file if each else own for each, own in zip(is_offset, frames.file, strict=True)]
    tree = replace(profile.tree, frames=frames.replace(kind=kinds, file=files))
    meta = {**profile.meta, "native_files": {file: {"path": path or file, "build_id": build_id}}}
    return replace(profile, tree=tree, meta=meta)


def native_frames(profile: Profile) -> set[tuple[str, str]]:
    frames = profile.tree.frames
    rows = (profile.tree.kind == FrameKind.NATIVE).nonzero()[0]
    return {(frames.name[profile.tree.frame[row]], frames.file[profile.tree.frame[row]]) for row in rows}


def test_offsets_become_names_in_a_library(tmp_path: Path) -> None:
    library = tmp_path / "libnet.so"
    library.write_bytes(elf([ALPHA, ("_ZN3net4stepEi", GLOBAL, FUNCTION, 0x200, 1)]))
    named = with_native_names(native_profile(str(library)))
    assert native_frames(named) == {("alpha", "libnet.so"), ("net::step(int)", "libnet.so")}
    assert named.inclusive("gpu_time")[0] == 7000


def test_functions_of_one_name_have_one_frame(tmp_path: Path) -> None:
    library = tmp_path / "libnet.so"
    library.write_bytes(elf([ALPHA, ("alpha.cold", 0, FUNCTION, 0x200, 1)]))
    named = with_native_names(native_profile(str(library)))
    assert native_frames(named) == {("alpha", "libnet.so")}
    assert len(set(named.tree.frame[named.tree.kind == FrameKind.NATIVE].tolist())) == 1


def test_a_function_without_a_symbol_keeps_its_offset(tmp_path: Path) -> None:
    library = tmp_path / "libnet.so"
    library.write_bytes(elf([ALPHA]))
    assert native_frames(with_native_names(native_profile(str(library)))) == {
        ("alpha", "libnet.so"),
        ("0x200", "libnet.so"),
    }


def test_a_file_that_changed_or_is_gone_gives_no_names(tmp_path: Path) -> None:
    library = tmp_path / "libnet.so"
    library.write_bytes(elf([ALPHA]))
    changed = with_native_names(native_profile(str(library), build_id="1234"))
    assert changed.meta["native_files"][str(library)]["missing"] == "the file has changed since the run"
    gone = with_native_names(native_profile("libgone.so (2)", path="/gone/libgone.so"))
    assert "No such file" in gone.meta["native_files"]["libgone.so (2)"]["missing"]
    offsets = {("0x100", "libnet.so"), ("0x200", "libnet.so")}
    assert native_frames(changed) == offsets
    assert native_frames(gone) == {(name, "libgone.so") for name, _ in offsets}


def test_profiles_without_native_frames_stay_as_they_are() -> None:
    profile = profile_from_text("root\n  matmul 3us")
    assert with_native_names(profile) is profile
