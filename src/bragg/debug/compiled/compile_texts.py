"""A program of its own: compiles kernels that are given as Triton's compiler first writes them, before its passes.

    python compile_texts.py JOBS

JOBS is a file with a JSON list of `{"file", "name", "target": [backend, arch, warp_size], "options"}`. For each one a
line of JSON is printed: `{"key": "symbol/hash", "files": the file that describes what was compiled}`, or `{"error"}`.
Triton may end the process: then the lines of the remaining kernels are missing.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import triton.compiler
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def main(jobs: str) -> None:
    """Compile all kernels of a file."""
    for job in json.loads(Path(jobs).read_text(encoding="utf-8")):
        print(json.dumps(_compiled(job)), flush=True)


def _compiled(job: dict[str, Any]) -> dict[str, str]:
    try:
        kernel = triton.compiler.compile(
            _text_source()(job["name"], job["file"]), target=GPUTarget(*job["target"]), options=job["options"]
        )
    except Exception as error:  # noqa: BLE001 - the compiler is Triton's, and its errors have no common class
        return {"error": f"{type(error).__name__}: {error}"}
    files = next(str(path) for name, path in kernel.metadata_group.items() if name.endswith(".json"))
    return {"key": f"{kernel.name}/{kernel.hash[:8]}", "files": files}


def _text_source() -> type:
    """A source whose text is read instead of being made of a function."""

    class Text(ASTSource):  # type: ignore[misc]
        def __init__(self, name: str, file: str) -> None:
            function = type("Function", (), {"__name__": name, "arg_names": []})
            super().__init__(function, {}, {}, {})
            self._file = file

        def hash(self) -> str:
            return hashlib.sha256(Path(self._file).read_bytes()).hexdigest()

        def make_ir(self, *given: Any, **named: Any) -> Any:
            context = next(each for each in (*given, *named.values()) if isinstance(each, ir.context))
            module = ir.parse_mlir_module(self._file, context)
            module.context = context
            return module

    return Text


if __name__ == "__main__":
    main(sys.argv[1])
