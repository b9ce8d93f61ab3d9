from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import bragg

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bragg"
FRAMEWORKS_AND_TABLES = {"click", "jax", "numpy", "rich", "torch", "triton"}


def python(program: str) -> str:
    """Standard output of a program in an interpreter of its own."""
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def imports(path: Path) -> set[str]:
    """The modules a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_import_loads_neither_numpy_nor_a_framework_nor_the_core() -> None:
    loaded = set(python("import sys, bragg; print(*sys.modules, sep='\\n')").split())
    assert loaded & (FRAMEWORKS_AND_TABLES | {"bragg._core", "bragg.record", "bragg.formats"}) == set()


def test_import_loads_few_modules() -> None:
    counted = "import sys; before = len(sys.modules); import bragg; print(len(sys.modules) - before)"
    assert int(python(counted)) <= 40  # 19 take 7 ms, of the 30 ms that an import may take


def test_one_file_loads_the_core() -> None:
    users = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py") if "bragg._core" in imports(path)}
    assert users == {"core.py"}


def test_every_public_name_exists() -> None:
    assert [name for name in bragg.__all__ if getattr(bragg, name) is None] == []


def test_version_is_the_same_everywhere() -> None:
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared is not None
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert bragg.__version__ == metadata.version("bragg") == declared[1] == newest[1]


def test_package_holds_the_core_and_no_tests() -> None:
    files = [str(path) for path in metadata.files("bragg") or []]
    assert any(name.endswith("bragg/libbragg_core.so") for name in files)
    tests = [name for name in files if Path(name).name.startswith(("test_", "conftest")) or "tests" in Path(name).parts]
    assert tests == []


def test_core_needs_neither_python_nor_cuda() -> None:
    core = Path(python("from bragg._core import library_path; print(library_path())").strip())
    dynamic = subprocess.run(["readelf", "--dynamic", core], check=True, capture_output=True, text=True).stdout
    needed = {name.split(".so")[0] for name in re.findall(r"NEEDED.*\[(.+)\]", dynamic)}
    assert needed <= {
        "ld-linux-x86-64",
        "ld-linux-aarch64",
        "libc",
        "libdl",
        "libgcc_s",
        "libm",
        "libpthread",
        "libstdc++",
    }
