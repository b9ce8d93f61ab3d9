"""Names of C and C++ functions, which are offsets in their files until the run is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from bragg.code.elf_symbols import ElfSymbols
from bragg.core import core
from bragg.model import FrameKind, Profile
from bragg.model.regroup import with_renamed_frames

_FILES = "native_files"


def with_native_names(profile: Profile) -> Profile:
    """The profile with the names of its native functions and of the libraries that they are in.

    Functions without a symbol keep their offset. `Run.native_files` says of each file that could not be read, or
    has changed since, why its functions have no names.
    """
    files = profile.run.native_files
    if not files:
        return profile
    frames = profile.tree.frames
    symbols: dict[str, ElfSymbols | str] = {}
    names, places = list(frames.name), list(frames.file)
    for row in (frames.kind == FrameKind.NATIVE).nonzero()[0].tolist():
        file = frames.file[row]
        if file not in files:
            continue
        if file not in symbols:
            symbols[file] = _read(files[file])
        places[row] = PurePath(files[file]["path"]).name
        names[row] = _name(symbols[file], frames.name[row])
    noted = {file: {**known, **_missing(symbols.get(file))} for file, known in files.items()}
    renamed = with_renamed_frames(profile, frames.replace(name=names, file=places))
    return replace(renamed, meta={**renamed.meta, _FILES: noted})


def _read(file: Mapping[str, Any]) -> ElfSymbols | str:
    """The symbols of a file, or why they are not known."""
    try:
        symbols = ElfSymbols.read(Path(file["path"]))
    except (OSError, ValueError) as error:
        return str(error)
    if symbols.build_id != file["build_id"]:
        return "the file has changed since the run"
    return symbols


def _missing(symbols: ElfSymbols | str | None) -> dict[str, str]:
    return {"missing": symbols} if isinstance(symbols, str) else {}


def _name(symbols: ElfSymbols | str, offset: str) -> str:
    name = "" if isinstance(symbols, str) else symbols.name(int(offset, 16))
    return core.demangle(name) if name else offset
