"""What XProf's overview page says of the slow JAX programs and of their repaired twins.

python benchmarks/xprof_rival.py record DIRECTORY [NAME...]    on a machine with a GPU: traces of `jax.profiler`
python benchmarks/xprof_rival.py read DIRECTORY [--out FILE]   where the package `xprof` is installed: its statements

A defect counts as found if a statement of the slow program names a bottleneck that the twin's do not.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parents[1] / "tests" / "gpu" / "programs" / "slow"
LIMIT_S = 60
_MARKED = """import itertools, jax
_numbers = itertools.count()
with jax.profiler.StepTraceAnnotation("step", step_num=next(_numbers)):
    pass"""
_NOTHING = ("", "no", "unknown")


def with_steps(text: str) -> ast.Module:
    """A program whose last loop marks its steps, as XProf asks for."""
    tree = ast.parse(text)
    loop = [each for each in tree.body if isinstance(each, ast.For)][-1]
    *counts, marked = ast.parse(_MARKED).body
    assert isinstance(marked, ast.With)
    marked.body, loop.body, tree.body = loop.body, [marked], [*counts, *tree.body]
    return ast.fix_missing_locations(tree)


def traced(program: Path, directory: Path) -> None:
    """Run a program in this process under JAX's profiler."""
    import jax

    code = compile(with_steps(program.read_text()), str(program), "exec")
    jax.profiler.start_trace(str(directory))
    try:
        exec(code, {"__name__": "__main__", "__file__": str(program)})
    finally:
        jax.profiler.stop_trace()


def record(directory: Path, names: list[str]) -> None:
    """Trace each program in a process of its own."""
    for program in sorted(PROGRAMS.glob("*.py")):
        name = program.stem.rpartition("_")[0]
        if "import jax" not in program.read_text() or (names and name not in names):
            continue
        command = [sys.executable, __file__, "trace", str(directory / program.stem), "--program", str(program)]
        try:
            subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=True)
            print(f"{program.stem}: recorded")
        except subprocess.SubprocessError as error:
            print(f"{program.stem}: failed: {str(getattr(error, 'stderr', b''))[-300:]}")


def statements(directory: Path) -> dict[str, str]:
    """The bottlenecks that XProf's overview page names for a trace."""
    from xprof.convert.raw_to_tool_data import xspace_to_tool_data

    files = sorted(map(str, directory.rglob("*.xplane.pb")))
    text, _ = xspace_to_tool_data(files, "overview_page", {})
    tables: list[dict[str, Any]] = json.loads(text)
    values = {name: str(value) for table in tables for name, value in table.get("p", {}).items()}
    return {name: value for name, value in values.items() if "bottleneck" in name or name == "statement"}


def named(found: dict[str, str]) -> set[str]:
    """Which of them say that something is a bottleneck."""
    return {f"{name}={value}" for name, value in found.items() if name != "statement" and value not in _NOTHING}


def read(directory: Path, out: Path | None) -> None:
    """Print what is said of each pair, and how many defects were found."""
    found = {path.name: statements(path) for path in sorted(directory.iterdir()) if path.is_dir()}
    pairs = sorted({name.rpartition("_")[0] for name in found})
    verdicts = {
        name: sorted(named(found.get(f"{name}_slow", {})) - named(found.get(f"{name}_fast", {}))) for name in pairs
    }
    print(*(f"{name}: {', '.join(told) or 'missed'}" for name, told in verdicts.items()), sep="\n")
    print(f"{sum(map(bool, verdicts.values()))} of {len(verdicts)} defects named")
    if out:
        out.write_text(json.dumps({"verdicts": verdicts, "said": found}, indent=1) + "\n")


def main() -> None:
    """Record or read."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("record", "read", "trace"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--program", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "trace":
        traced(arguments.program, arguments.directory)
    elif arguments.what == "record":
        record(arguments.directory, arguments.names)
    else:
        read(arguments.directory, arguments.out)


if __name__ == "__main__":
    main()
