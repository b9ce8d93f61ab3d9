"""The same program under JAX's profiler and under bragg, by turns: the mean time of each kernel of its modules.

python benchmarks/jax_agreement.py --out results.json     (a GPU and JAX)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import harness

# Both run the executables that the first run compiled: XLA may tune them otherwise each time.
PROGRAM = """
import contextlib, sys
import jax, jax.numpy as jnp

def block(p, x):
    with jax.named_scope("attention"):
        q, k, v = (x @ p[name] for name in "qkv")
        x = x + jax.nn.softmax(jnp.einsum("bth,bsh->bts", q, k)) @ v
    with jax.named_scope("mlp"):
        return x + jax.nn.gelu(x @ p["up"]) @ p["down"]

def loss(blocks, x):
    for number, p in enumerate(blocks):
        with jax.named_scope(f"block{number}"):
            x = block(p, x)
    return jnp.mean(x**2)

size = 1024
shapes = {"q": (size, size), "k": (size, size), "v": (size, size), "up": (size, 4 * size), "down": (4 * size, size)}
blocks = [{name: jnp.full(shape, 1e-3) for name, shape in shapes.items()} for _ in range(4)]
x = jnp.ones((8, 512, size))
step = jax.jit(jax.value_and_grad(loss))
jax.block_until_ready(step(blocks, x))
with jax.profiler.trace(sys.argv[1]) if len(sys.argv) > 1 else contextlib.nullcontext():
    for _ in range(100):
        found = step(blocks, x)
    jax.block_until_ready(found)
"""
READ_TRACE = """
import json, sys
from pathlib import Path
import jax
times = {}
data = jax.profiler.ProfileData.from_file(str(next(Path(sys.argv[1]).rglob("*.xplane.pb"))))
for plane in data.planes:
    for line in plane.lines if plane.name.startswith("/device:GPU") else ():
        for event in line.events if line.name.startswith("Stream") else ():
            count, total = times.get(event.name, (0, 0))
            times[event.name] = count + 1, total + event.duration_ns
print(json.dumps(times))
"""


def under_jax(script: Path, directory: Path, environment: dict[str, str]) -> harness.Times:
    """Kernels by name as JAX's profiler sees them: how many, and their time in ns."""
    trace = directory / "trace"
    subprocess.run([sys.executable, script, trace], check=True, timeout=120, env=environment)
    read = subprocess.run([sys.executable, "-c", READ_TRACE, trace], check=True, capture_output=True, text=True)
    return {name: tuple(times) for name, times in json.loads(read.stdout).items()}


def under_bragg(script: Path, directory: Path, environment: dict[str, str]) -> harness.Times:
    """Likewise, as bragg sees them."""
    import bragg
    from bragg.model import FrameKind
    from bragg.model.transform import flat
    from bragg.views.terminal.filters import filter_paths

    output = directory / "jax.bragg"
    options = ["--no-summary", "--force", "-o", str(output)]
    subprocess.run(
        [sys.executable, "-m", "bragg", "run", *options, str(script)], check=True, timeout=120, env=environment
    )
    table = flat(filter_paths(bragg.load(output), include=r"^jit\(loss\)$", exclude=r"^\[compile\]").profile)
    rows = zip(
        table.frames.kind,
        table.frames.name,
        table.metrics["gpu_count"].own.tolist(),
        table.metrics["gpu_time"].own.tolist(),
        strict=True,
    )
    return {name: (count, time) for kind, name, count, time in rows if kind == FrameKind.KERNEL}


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=3, help="how often each of them records the program")
    arguments = parser.parse_args()
    runs: dict[str, list[harness.Times]] = {"jax": [], "bragg": []}
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory, "program.py")
        script.write_text(PROGRAM)
        cache = {"JAX_COMPILATION_CACHE_DIR": directory, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        environment = {**os.environ, **cache}
        for number in range(arguments.rounds):
            for profiler, record in (("jax", under_jax), ("bragg", under_bragg)):
                folder = Path(directory, f"{profiler}{number}")
                folder.mkdir()
                runs[profiler].append(record(script, folder, environment))
    harness.report("jax_agreement", harness.agreement_rows(runs, "kernel"), arguments.out)


if __name__ == "__main__":
    main()
