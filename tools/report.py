"""Prints what continuous integration shows at a glance: import time, cost of a scope, longest files."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE_SUFFIXES = {".py", ".pyi", ".cpp", ".h", ".c", ".ts", ".sh"}
IMPORT_STATEMENT = "import time; start = time.perf_counter(); import bragg; print(time.perf_counter() - start)"


def import_time_ms(rounds: int = 15) -> float:
    """Median time of `import bragg` over fresh interpreters."""
    times = [
        float(subprocess.run([sys.executable, "-c", IMPORT_STATEMENT], check=True, capture_output=True).stdout)
        for _ in range(rounds)
    ]
    return 1e3 * statistics.median(times)


def longest_files(count: int = 5) -> list[tuple[int, str]]:
    """The tracked source files with the most lines."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    sources = [name for name in tracked if Path(name).suffix in SOURCE_SUFFIXES and (ROOT / name).is_file()]
    lengths = [((ROOT / name).read_bytes().count(b"\n"), name) for name in sources]
    return sorted(lengths, reverse=True)[:count]


def main() -> None:
    """Print the report."""
    print(f"import bragg: {import_time_ms():.1f} ms (median of 15)", flush=True)
    subprocess.run([sys.executable, ROOT / "benchmarks" / "scope_cost.py"], check=True)
    print("Longest files:")
    for lines, name in longest_files():
        print(f"  {lines:5} {name}")


if __name__ == "__main__":
    main()
