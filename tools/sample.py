"""Makes the profile that is shipped out of a recording of examples/train_gpt2.py: python tools/sample.py RECORDED OUT.

    bragg run --data trace --modules --regions all --sample train_gpt2.py --layers 2 --steps 8

Two things are left out. Instructions of kernels that have no source here, those of libraries, are added up in their
kernel: they are nine of ten call paths, and nobody can read them without their code. And what tells of the machine:
its name, its directories, process ids.
"""

from __future__ import annotations

import lzma
import re
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from bragg import formats
from bragg.model import FrameKind, Profile
from bragg.model.regroup import regroup

_PYTHON = re.compile(r"^/.*?(?=/lib/python3\.\d+/)")
_OF_MACHINE = {"environment": {}, "executable": "python3", "host": "gpu-machine", "cwd": ".", "pid": 1, "ppid": 0}


def without_library_instructions(profile: Profile) -> Profile:
    """Instruction samples of kernels whose code the profile does not hold are those of the kernel."""
    tree, attributes = profile.tree, profile.run.attributes
    has_code = np.array(["code" in attributes.get(name, {}) for name in tree.frames.name])[tree.frame]
    is_line = tree.kind == FrameKind.LINE
    kernel = np.arange(len(tree))
    for level in tree.levels[1:]:
        kernel[level] = np.where(is_line[level], kernel[tree.parent[level]], level)
    return regroup(tree, folded=is_line & ~has_code[kernel]).apply(profile)


def without_machine(profile: Profile) -> Profile:
    """Paths are relative: to the program's directory, and to that of Python."""
    directory = f"{profile.meta['cwd']}/"

    def shown(value: Any) -> Any:
        if isinstance(value, str):
            return _PYTHON.sub("", value.replace(directory, "")).removeprefix("/lib/")
        if isinstance(value, dict):
            return {shown(key): shown(each) for key, each in value.items()}
        return [shown(each) for each in value] if isinstance(value, list) else value

    frames = profile.tree.frames
    files = [
        _PYTHON.sub("", file.replace(directory, "")).lstrip("/") if directory in file or "/lib/" in file else file
        for file in frames.file
    ]
    command = ["python3", *profile.meta["command"][1:]]
    meta = {**shown(dict(profile.meta)), **_OF_MACHINE, "command": command, "platform": "Linux x86_64"}
    meta.pop("recorder_directory", None)
    sources = {name.replace(directory, ""): text.replace(directory, "") for name, text in profile.sources.items()}
    tree = replace(profile.tree, frames=replace(frames, file=files))
    return replace(profile, tree=tree, meta=meta, sources=sources)


def packed(path: Path) -> bytes:
    """A profile with its members stored as they are, compressed as a whole: see `bragg.data.sample`."""
    content = BytesIO()
    with ZipFile(path) as profile, ZipFile(content, "w") as stored:
        for member in profile.namelist():
            stored.writestr(ZipInfo(member), profile.read(member))
    strongest = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 2, "lp": 0, "pb": 0}
    return lzma.compress(content.getvalue(), filters=[strongest])


def main() -> None:
    """Read, leave out, write."""
    recorded, out = map(Path, sys.argv[1:])
    profile = without_machine(without_library_instructions(formats.load(recorded)))
    profile.check()
    formats.export(profile, "bragg", out)
    out.write_bytes(packed(out))
    print(f"{out}: {out.stat().st_size:,} bytes, {len(profile.tree):,} call paths")


if __name__ == "__main__":
    main()
