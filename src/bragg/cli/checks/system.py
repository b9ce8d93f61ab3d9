"""Checks of permissions, disks, the terminal and the cluster."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from bragg.cli.checks.check import Check, State, Surroundings, note, ok

# Bits of CapEff. Source: linux/capability.h.
_CAPABILITIES = {"SYS_PTRACE": 19, "SYS_ADMIN": 21, "PERFMON": 38}
# What `bragg run` asks for before it starts a program, with room for a trace of some minutes.
_ENOUGH_FREE_BYTES = 1 << 30


def check_capabilities(surroundings: Surroundings) -> Check:
    """Privileges beyond those of every user."""
    mask = int(_status(surroundings).get("CapEff", "0"), 16)
    held = [name for name, bit in _CAPABILITIES.items() if mask >> bit & 1]
    return ok("capabilities", ", ".join(held) if held else "none: kernel times and call paths need none")


def check_confinement(surroundings: Surroundings) -> Check:
    """System call filters of the container."""
    status = _status(surroundings)
    filters = {"0": "none", "1": "strict", "2": "filter"}.get(status.get("Seccomp", "0"), "unknown")
    return ok(
        "confinement", f"seccomp {filters}, no-new-privileges {'on' if status.get('NoNewPrivs') == '1' else 'off'}"
    )


def check_perf_events(surroundings: Surroundings) -> Check:
    """Kernel setting for performance events; bragg's host samples do not use them."""
    level = surroundings.read("proc/sys/kernel/perf_event_paranoid")
    return ok("perf_event_paranoid", f"{level}; bragg does not need it" if level else "not known")


def check_ptrace(surroundings: Surroundings) -> Check:
    """Kernel setting for debuggers; bragg does not attach to processes."""
    scope = surroundings.read("proc/sys/kernel/yama/ptrace_scope")
    return ok("ptrace_scope", f"{scope}; bragg does not need it" if scope else "not set")


def check_temporary_directory(surroundings: Surroundings) -> Check:
    """Compilers of kernels can load what they write."""
    directory = Path(tempfile.gettempdir()).resolve()
    if "noexec" not in _mount_options(surroundings, directory):
        return ok("temporary files", str(directory))
    blocks = "kernels that Triton or PyTorch compile there"
    return Check("temporary files", State.LIMITED, f"{directory} is mounted noexec", blocks, "Set TMPDIR elsewhere")


def check_directory(surroundings: Surroundings) -> Check:
    """Profiles can be written here."""
    here = Path.cwd()
    if not os.access(here, os.W_OK):
        return Check(
            "this directory", State.LIMITED, f"{here} is read-only", "profiles without -o", "Use -o, or go elsewhere"
        )
    free_bytes = shutil.disk_usage(here).free
    found = f"{here}, {free_bytes / 1e9:.1f} GB free"
    if free_bytes < _ENOUGH_FREE_BYTES:
        return note("this directory", found, blocks="long traces", fix="Make room, or use -o")
    return ok("this directory", found)


def check_terminal(surroundings: Surroundings) -> Check:
    """What views can use."""
    encoding = (sys.stdout.encoding or "").lower()
    colour = "no colour: NO_COLOR" if surroundings.environ.get("NO_COLOR") else "colour on a terminal"
    if not encoding.startswith("utf"):
        return note(
            "terminal", f"encoding {encoding}", blocks="smooth lines and bars", fix="Set PYTHONIOENCODING=utf-8"
        )
    return ok("terminal", f"{surroundings.environ.get('TERM', 'none')}, {encoding}, {colour}")


def check_display(surroundings: Surroundings) -> Check:
    """Whether a browser could be opened; bragg opens none on its own."""
    environ = surroundings.environ
    if environ.get("SSH_CONNECTION"):
        return ok("display", "over ssh: views are text")
    display = environ.get("WAYLAND_DISPLAY") or environ.get("DISPLAY")
    return ok("display", display or "none: views are text")


def check_cluster(surroundings: Surroundings) -> Check:
    """Scheduler and container, for the names of profiles."""
    environ = surroundings.environ
    found = [f"Slurm job {environ['SLURM_JOB_ID']}"] if "SLURM_JOB_ID" in environ else []
    found += ["Kubernetes"] if "KUBERNETES_SERVICE_HOST" in environ else []
    found += (
        ["container"]
        if any((surroundings.root / name).exists() for name in (".dockerenv", "run/.containerenv"))
        else []
    )
    return ok("cluster", ", ".join(found) if found else "no scheduler, no container")


def _status(surroundings: Surroundings) -> dict[str, str]:
    lines = (surroundings.read("proc/self/status") or "").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _mount_options(surroundings: Surroundings, directory: Path) -> list[str]:
    """Options of the file system that holds a directory."""
    mounts = [line.split() for line in (surroundings.read("proc/self/mounts") or "").splitlines()]
    holding = [fields for fields in mounts if len(fields) > 3 and directory.is_relative_to(fields[1])]
    return max(holding, key=lambda fields: len(fields[1]))[3].split(",") if holding else []


CHECKS = (
    check_capabilities,
    check_confinement,
    check_perf_events,
    check_ptrace,
    check_temporary_directory,
    check_directory,
    check_terminal,
    check_display,
    check_cluster,
)
