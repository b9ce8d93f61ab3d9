from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection
from importlib import metadata
from pathlib import Path

import bragg

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bragg"
SOURCE_SUFFIXES = {".c", ".cpp", ".css", ".h", ".py", ".ts"}
MOST_FILES = 20
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


def test_the_recorder_knows_no_vendor() -> None:
    """A source of events is a folder below native/backends and a row: nothing else names it."""
    vendor = re.compile(r"cupti::|cuda::|cuda_backend::|pc_sampling::|device_values::|backends/(cuda|rocm|cpu)")
    files = [
        path for part in ("api", "bindings", "context", "data", "intake") for path in (ROOT / "native" / part).iterdir()
    ]
    assert len(files) > 100
    assert [
        f"{path.name}: {line}" for path in files for line in path.read_text().splitlines() if vendor.search(line)
    ] == []
    recorder = [path for path in files if path.name.startswith("recorder")]
    assert [path.name for path in recorder if re.search("cuda|cupti", path.read_text(), re.IGNORECASE)] == []


def test_the_vendor_is_named_where_libraries_are_found_and_options_read_and_nowhere_else() -> None:
    """In code; comments give reasons, and may name whom they concern."""
    named = {
        "api/bragg_core.cpp": 10,  # the automatic session of CUDA_INJECTION64_PATH, candidates of a library, probing
        "api/bragg_core.h": 4,
        "api/session_options.cpp": 1,  # the name of a backend
        "context/loaded_code.cpp": 1,  # whose frames are left out of call paths
    }
    words = re.compile(r"cuda|cupti|nvidia|nvml", re.IGNORECASE)
    found = {}
    for part in ("api", "context", "data", "intake"):
        for path in sorted((ROOT / "native" / part).rglob("*")):
            if path.suffix not in {".c", ".cpp", ".h"}:
                continue
            code = [line.split("//")[0] for line in path.read_text().splitlines()]
            if lines := sum(words.search(line) is not None for line in code):
                found[f"{part}/{path.name}"] = lines
    assert found == named


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


def test_folders_are_small_or_say_why_not() -> None:
    """Files of one name are one thing: a source with its header, a module with its test beside it."""
    trees = ("benchmarks", "native", "src", "tests", "tools", "web/src")
    folders = [path for tree in trees for path in (ROOT / tree).rglob("*") if path.is_dir()]
    large = [path for path in folders if len(_names_in(path)) > MOST_FILES and not _has_reason(path)]
    assert [str(path.relative_to(ROOT)) for path in large] == []


def _names_in(folder: Path) -> set[str]:
    sources = {path.name.partition(".")[0] for path in folder.iterdir() if path.suffix in SOURCE_SUFFIXES}
    return sources - {"__init__"}


def _has_reason(folder: Path) -> bool:
    readme = folder / "README.md"
    return readme.is_file() and len(readme.read_text().split("\n\n")[1]) > 0


def test_unit_tests_have_the_folders_of_the_package() -> None:
    folders = [path.parent.relative_to(ROOT / "tests/unit") for path in (ROOT / "tests/unit").rglob("test_*.py")]
    assert [str(folder) for folder in folders if not (SOURCE / folder).is_dir()] == []


def test_no_files_import_each_other_in_circles() -> None:
    """Imports for types alone and within functions count, too: what knows of each other is one thing in two files."""
    modules = {_module_name(path): path for path in SOURCE.rglob("*.py")}
    known = {name: _modules_used(path, modules.keys()) - {"bragg", name} for name, path in modules.items()}
    left = dict(known)
    while leaves := [name for name, used in left.items() if not used & left.keys()]:
        for name in leaves:
            del left[name]
    in_circles = [name for name in left if _reaches(name, name, left)]
    assert in_circles == []


def _modules_used(path: Path, modules: Collection[str]) -> set[str]:
    """The modules that a file imports; a package only where it takes a name of it, and no module in it."""
    used = {name for name in imports(path) if name in modules}
    return {name for name in used if not any(other.startswith(f"{name}.") for other in used)}


def _module_name(path: Path) -> str:
    parts = ("bragg", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _reaches(start: str, wanted: str, known: dict[str, set[str]]) -> bool:
    pending, seen = [start], set[str]()
    while pending:
        for used in known[pending.pop()] & known.keys():
            if used == wanted:
                return True
            if used not in seen:
                seen.add(used)
                pending.append(used)
    return False
