"""Programs in C that launch kernels on the fake driver, without any Python."""

from __future__ import annotations

import subprocess
from pathlib import Path

_PROGRAM = """\
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(void**, int); int cuCtxSetCurrent(void*);
int cuModuleGetFunction(void**, void*, const char*); int cuCtxSynchronize(void);
typedef unsigned u;
int cuLaunchKernel(void*, u, u, u, u, u, u, u, void*, void**, void**);
static void* kernel;
static void launch(void) { cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL); }
int main(void) {
  void* context;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 9;
  cuModuleGetFunction(&kernel, NULL, "native");
%s
}
"""


def build_native_program(directory: Path, fakes_directory: Path, body: str) -> str:
    """The path of a program whose `main` ends with `body`, which may call `launch()` for one kernel, `native`."""
    source, program = directory / "program.c", directory / "program"
    source.write_text(_PROGRAM % body)
    subprocess.run(["cc", "-o", program, source, fakes_directory / "libcuda.so.1"], check=True)
    return str(program)
