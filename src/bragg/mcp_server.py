"""The commands of bragg as tools of an MCP server: for programs that make other programs faster.

A tool is a command line that runs in a process of its own: what it prints is the answer, and a program that it records
or checks cannot break the server. Each answer names the calls that come next.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

from bragg.cli.console import JSON_SCHEMA
from bragg.model.facts import Facts
from bragg.model.kernels.names import is_specialized

__all__ = ["server"]

_INSTRUCTIONS = """\
Find out why a GPU program (PyTorch, Triton, JAX) is slow: record it, analyze the profile, look at the code that a \
finding names, change it, record it again, and diff both profiles. check finds bugs in Triton kernels without a GPU."""

_N_ROWS = 30
_N_CHANGES = 15
_READ_S = 120.0
_MOST_CHARACTERS = 20_000
_SHOWN_OUTPUT = 2_000
_END_S = 60.0  # to write a large profile, on a busy machine
_FINE = frozenset({0, 3})  # 3: there are findings
_NO_PROFILE = 6

Answer = dict[str, Any]


def server() -> MCPServer:
    """A server with all tools."""
    made = MCPServer("bragg", instructions=_INSTRUCTIONS)
    for tool in (record, analyze, view, source, reproduce, diff, check):
        made.add_tool(tool, structured_output=True)
    return made


async def record(
    command: list[str], output: str = "run.bragg", options: Sequence[str] = (), timeout_s: float = 600.0
) -> Answer:
    """Run a program and write its profile; the answer says what bounds it and what to change first.

    Args:
        command: The program and its arguments: ["train.py", "--steps", "20"], ["-m", "pytest", "-k", "speed"], or any
            other command behind "--".
        output: The profile, a .bragg file, which is overwritten.
        options: Of `bragg run`: ["--data", "trace"] adds the timeline, ["--sample"] samples instructions.
        timeout_s: After so many seconds the program gets SIGINT, and its profile is written.
    """
    done = await _run(["run", "--json", "--force", "-o", output, *options, *command], timeout_s)
    text, result = _split(done.output)
    answer = {"exit_code": done.exit_code, "output": text[-_SHOWN_OUTPUT:], "errors": done.errors[-_SHOWN_OUTPUT:]}
    profiles = [str(profile.get("file")) for profile in Facts(result).rows("profiles")]
    if not profiles:
        return {**answer, "profiles": [], "next": [_call("record", command=command)]}
    brief = await _run(["analyze", "--brief", profiles[0]], _READ_S)
    return {
        **answer,
        "profiles": profiles,
        "analysis": _split(brief.output)[1],
        "next": [_call("analyze", file=profiles[0]), _call("view", file=profiles[0])],
    }


async def analyze(file: str, least_gain: str = "1%") -> Answer:
    """Say why a recorded program is slow: findings by the wall time they save, with evidence, line and change to make.

    Args:
        file: A profile.
        least_gain: Leave out findings that save less wall time than this: "2%".
    """
    done = await _run(["analyze", "--json", "--least-gain", least_gain, file], _READ_S)
    answer = _answer(done, "analysis")
    calls = [*_calls_of_kernel(file, answer), _call("view", file=file), _call("diff", before=file)]
    return _with_next(answer, *calls)


def _calls_of_kernel(file: str, answer: Answer) -> list[Answer]:
    """What to ask of the kernel that is found first, if the profile has its code."""
    profiles = answer.get("analysis", {}).get("profiles", [])
    kernels = [finding.get("kernel", "") for profile in profiles for finding in profile["findings"]]
    first = next(filter(is_specialized, kernels), None)
    return [_call(tool, file=file, kernel=first) for tool in ("source", "reproduce")] if first else []


async def view(file: str, metric: str = "", include: str = "", by_name: bool = False) -> Answer:
    """Show where the time went, as a tree of call paths, or as a table by name.

    Args:
        file: A profile.
        metric: `gpu_time`, `host_time`, or another metric of the profile.
        include: A regular expression: only call paths through names that match.
        by_name: A table by kernel or function instead of the tree.
    """
    words = ["view", "-n", str(_N_ROWS), *_option("-m", metric), *_option("-i", include)]
    done = await _run([*words, *(["--flat"] if by_name else []), file], _READ_S)
    return _with_next(_text(done), _call("analyze", file=file), _call("source", file=file))


async def source(file: str, kernel: str = "", ir: str = "python") -> Answer:
    """Show a kernel's code or a file of the program, line by line, with samples or times and what was found at lines.

    Args:
        file: A profile.
        kernel: Its name, or a regular expression; or a file of the program, `train.py`, or a line of it, `train.py:52`.
            By default the hottest kernel with code; if there is none, the main file of the program.
        ir: `python`, or a stage of the compiler: `ttir`, `ttgir`, `llir`, `ptx`, `sass`.
    """
    done = await _run(["source", "--ir", ir, file, *([kernel] if kernel else [])], _READ_S)
    shown = kernel or done.output.partition("  ")[0]  # The first line begins with the name of the kernel.
    is_program = shown.partition(":")[0].endswith(".py")
    reproduced = [] if is_program or not shown else [_call("reproduce", file=file, kernel=shown)]
    return _with_next(_text(done), *reproduced, _call("check", command=[]))


async def reproduce(file: str, kernel: str, output: str = "kernel") -> Answer:
    """Write a directory that compiles and times one Triton kernel alone: its code, facts, and a script.

    Args:
        file: A profile.
        kernel: Its name.
        output: The directory, which is made.
    """
    done = await _run(["analyze", file, "--bundle", kernel, "-o", output], _READ_S)
    script = [str(Path(output) / "reproduce.py"), *([] if done.exit_code else _numbers_of(Path(output)))]
    return _with_next(_text(done), _call("record", command=script), _call("source", file=file, kernel=kernel))


def _numbers_of(directory: Path) -> list[str]:
    """Options of a written script for what no profile has, with what is known of each value."""
    arguments = json.loads((directory / "facts.json").read_text(encoding="utf-8"))["arguments"] or []
    numbers = [each for each in arguments if "ptr" not in each["type"]]
    told = [(f"--arg-{each['name']}", f"<{each['type']}, {each['divisibility']} divides it>") for each in numbers]
    return [word for pair in told for word in pair]


async def diff(before: str, after: str, by: str = "kernel") -> Answer:
    """Say what became faster or slower from one profile to another, and which findings have gone or are new.

    Args:
        before: A profile, or a directory of repeated runs.
        after: A profile, or a directory of repeated runs.
        by: `path`, `kernel` or `specialization`.
    """
    done = await _run(["diff", "--json", "-n", str(_N_CHANGES), "--by", by, before, after], _READ_S)
    return _with_next(_answer(done, "difference"), _call("analyze", file=after), _call("view", file=after))


async def check(command: list[str], timeout_s: float = 600.0) -> Answer:
    """Execute the Triton kernels of a program without a GPU and find bugs: races, accesses outside of tensors, ...

    Args:
        command: The program and its arguments: ["kernels.py"].
        timeout_s: After so many seconds the check ends.
    """
    done = await _run(["check", "--json", *command], timeout_s)
    answer = _answer(done, "check")
    return {**answer, "next": [_call("check", command=command), _call("record", command=command)]}


@dataclass(frozen=True)
class _Done:
    """A command that has ended: what it printed, and its exit code."""

    output: str
    errors: str
    exit_code: int


async def _run(words: Sequence[str], timeout_s: float) -> _Done:
    # The server's input is the protocol's: no program may read it.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bragg", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    printed = asyncio.ensure_future(process.communicate())
    for number, patience_s in ((signal.SIGINT, timeout_s), (signal.SIGKILL, _END_S)):
        await asyncio.wait([printed], timeout=patience_s)
        if printed.done():
            break
        os.killpg(process.pid, number)
    try:
        output, errors = await asyncio.wait_for(printed, _END_S)
    except asyncio.TimeoutError:  # a process that it started has left its group and holds the pipe
        return _Done("", f"bragg {words[0]} was stopped after {timeout_s:g} s", -signal.SIGKILL)
    return _Done(output.decode(errors="replace"), errors.decode(errors="replace"), process.returncode or 0)


def _split(output: str) -> tuple[str, Answer | None]:
    """What a program printed, and the JSON object that bragg has put into the last line, if it has."""
    text, _, last = output.rstrip("\n").rpartition("\n")
    try:
        found = json.loads(last)
    except ValueError:
        return output, None
    is_own = isinstance(found, dict) and found.get("schema") == JSON_SCHEMA
    return (text, found) if is_own else (output, None)


def _answer(done: _Done, name: str) -> Answer:
    result = _split(done.output)[1]
    if done.exit_code in _FINE and result is not None:
        return {"exit_code": done.exit_code, name: result}
    return {"exit_code": done.exit_code, "errors": done.errors[-_SHOWN_OUTPUT:]}


def _text(done: _Done) -> Answer:
    if done.exit_code:
        return {"exit_code": done.exit_code, "errors": done.errors[-_SHOWN_OUTPUT:]}
    return {"exit_code": 0, "text": done.output[:_MOST_CHARACTERS]}


def _with_next(answer: Answer, *calls: Answer) -> Answer:
    """The answer with the calls that come next: without a profile to read, one that makes it."""
    return {**answer, "next": [_call("record", command=[])] if answer["exit_code"] == _NO_PROFILE else [*calls]}


def _option(name: str, value: str) -> list[str]:
    return [name, value] if value else []


def _call(tool: str, **arguments: Any) -> Answer:
    return {"tool": tool, "arguments": arguments}
