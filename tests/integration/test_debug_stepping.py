"""Debuggers inside of kernels: pdb at a terminal, an IDE through debugpy, cells of a notebook."""

from __future__ import annotations

import os
import pty
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.debug_adapter import DebugAdapter
from tests.support.forked_bragg import forked_bragg

pytest.importorskip("triton")

TIMEOUT_S = 240
# Since 3.13 `breakpoint()` stops at its own line, and before that at the next.
STEP_TO_NEXT = ["n"] if sys.version_info >= (3, 13) else []
SCRIPT = """\
import numpy as np
import triton
import triton.language as tl

@triton.jit
def scaled(block, factor):
    product = block * factor
    return product

@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask, other=0.0)
    if pid >= 2:
        STOP
        values = scaled(values, 3.0)
    tl.store(out + offsets, values, mask=mask)

x, out = np.arange(30, dtype="f4"), np.zeros(30, "f4")
RUN
print("result", out[29])
"""


def write(directory: Path, stop: str = "breakpoint()", run: str = "kernel[(4,)](x, out, 30, BLOCK=8)") -> Path:
    script = directory / "script.py"
    script.write_text(SCRIPT.replace("STOP", stop).replace("RUN", run))
    return script


def line_of(script: Path, text: str) -> int:
    return next(number for number, line in enumerate(script.read_text().splitlines(), 1) if text in line)


def at_prompt(script: Path, commands: list[str], *options: str, **variables: str) -> list[str]:
    """What `bragg debug` prints when these commands are typed."""
    return debugged(script, commands, *options, **variables).stdout.replace("(Pdb) ", "").splitlines()


def debugged(script: Path, commands: list[str], *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    done = forked_bragg("debug", *options, script, text="\n".join(commands) + "\n", **variables)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("stop", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_values_are_those_of_the_programs_that_got_to_the_breakpoint(tmp_path: Path, stop: str) -> None:
    commands = ["p offsets", 'print("offsets=", offsets)', "p values.shape", "c"]
    output = at_prompt(write(tmp_path, stop), [*STEP_TO_NEXT, *commands])[3 * len(STEP_TO_NEXT) :]
    assert output[:3] == [
        f"> {tmp_path}/script.py(18)kernel()",
        "-> values = scaled(values, 3.0)",
        "programs: (2, 0, 0), (3, 0, 0), of a grid of (4, 1, 1)",
    ]
    assert output[3:5] == ["int32[8], 2 programs: [[16 17 18 19 20 21 22 23]", " [24 25 26 27 28 29 30 31]]"]
    assert output[5:7] == [
        "pid (2, 0, 0) offsets= [16 17 18 19 20 21 22 23]",
        "pid (3, 0, 0) offsets= [24 25 26 27 28 29 30 31]",
    ]
    assert output[7:9] == ["(8,)", "result 87.0"]


def test_values_are_arrays_at_the_prompt_with_a_row_for_each_program(tmp_path: Path) -> None:
    commands = ["p values.mean()", "p values[1]", "p values[:, 2:4]", "p values[values > 28]", "p np.median(values)"]
    commands += ["p np.max(values, axis=1)", "p x", "c"]
    output = at_prompt(write(tmp_path), [*STEP_TO_NEXT, *commands])[3 + 3 * len(STEP_TO_NEXT) :]
    shown = [line.replace("np.float32(", "").rstrip(")") for line in output]
    assert shown[0] == "19.6875"
    assert shown[1:3] == ["array([24., 25., 26., 27., 28., 29.,  0.,  0.], dtype=float32", "array([[18., 19.],"]
    assert shown[4:7] == ["array([29.], dtype=float32", "21.5", "array([23., 29.], dtype=float32"]
    assert re.match(r"pointer<fp32> into x \(fp32\[30\], at 0x[0-9a-f]+\), elements int64\[\]: 0", output[7])


def test_lanes_that_were_not_read_are_undefined_and_count_for_nothing(tmp_path: Path) -> None:
    script = write(tmp_path)
    script.write_text(script.read_text().replace("mask=mask, other=0.0", "mask=mask"))
    commands = ["p values", "p values.mean()", "p np.max(values)", "p np.median(values)", "print(values)"]
    commands += ["p np.median(values.to(tl.int32))", "c"]
    output = at_prompt(script, [*STEP_TO_NEXT, *commands])[3 + 3 * len(STEP_TO_NEXT) :]
    shown = [line.replace("np.float32(", "").replace("np.float64(", "").rstrip(")") for line in output]
    assert shown[:-2] == [
        "fp32[8], 2 programs, -- is undefined: [[16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]",
        " [24.0 25.0 26.0 27.0 28.0 29.0 -- --]]",
        "22.5",
        "29.0",
        "nan",
        "pid (2, 0, 0)  [16. 17. 18. 19. 20. 21. 22. 23.]",
        "pid (3, 0, 0)  [24.0 25.0 26.0 27.0 28.0 29.0 -- --]",
        "*** ValueError: elements are undefined: methods such as .max() and .mean() leave them out",
    ]


@pytest.mark.parametrize(
    ("mask", "last"), [("", "-- --"), (", mask=mask", "-- --"), (", mask=mask, other=7.0", "-- 7.0")]
)
def test_lanes_outside_of_their_tensor_are_undefined(tmp_path: Path, mask: str, last: str) -> None:
    script = write(tmp_path, run="kernel[(4,)](x, out, 31, BLOCK=8)")
    script.write_text(script.read_text().replace(", mask=mask, other=0.0", mask))
    output = at_prompt(script, [*STEP_TO_NEXT, "p values", "p values.sum(axis=1)", "c"])[3 + 3 * len(STEP_TO_NEXT) :]
    assert output[:2] == [
        "fp32[8], 2 programs, -- is undefined: [[16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]",
        f" [24.0 25.0 26.0 27.0 28.0 29.0 {last}]]",
    ]
    assert f"data=[156.0, {159.0 + (7.0 if '7' in last else 0.0)}]" in output[2]
    assert output[-1] == "2 errors in 1 launch of 4 programs"


@pytest.mark.parametrize(
    "read",
    [
        "tl.atomic_add(x + offsets, 0.0)",
        "tl.atomic_cas(x + offsets, -1.0, 2.0)",
        "tl.load(tl.where(offsets < 4, out + offsets, x + offsets))",
    ],
)
def test_old_values_outside_of_their_tensor_are_undefined(tmp_path: Path, read: str) -> None:
    script = write(tmp_path)
    script.write_text(script.read_text().replace("tl.load(x + offsets, mask=mask, other=0.0)", read))
    output = at_prompt(script, [*STEP_TO_NEXT, "p values", "c"])[3 + 3 * len(STEP_TO_NEXT) :]
    assert output[:2] == [
        "fp32[8], 2 programs, -- is undefined: [[16.0 17.0 18.0 19.0 20.0 21.0 22.0 23.0]",
        " [24.0 25.0 26.0 27.0 28.0 29.0 -- --]]",
    ]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="this Python does not tell what part of a line is executed")
def test_steps_follow_the_authors_lines_into_helpers_and_back_to_the_script(tmp_path: Path) -> None:
    commands = [*STEP_TO_NEXT, "s", "s", "p block", "s", "r", "n", "n", "n", "c"]
    output = at_prompt(write(tmp_path), commands, "--program", "2")
    places = [line.rpartition("/")[2] for line in output if line.startswith("> ")]
    assert places[len(STEP_TO_NEXT) :] == [
        "script.py(18)kernel()",
        "script.py(6)scaled()",
        "script.py(7)scaled()",
        "script.py(8)scaled()",
        "script.py(8)scaled()->fp32[8]: [48..... 63. 66. 69.]",
        "script.py(19)kernel()",
        "script.py(19)kernel()->None",
        "script.py(23)<module>()",
    ]
    assert "fp32[8]: [16. 17. 18. 19. 20. 21. 22. 23.]" in output


def test_the_stack_holds_nothing_but_the_program(tmp_path: Path) -> None:
    output = at_prompt(write(tmp_path), ["b 7", "c", "w", "c", "c"], "--program", "3")
    start = output.index(f"  {tmp_path}/script.py(22)<module>()")
    assert [line for line in output[start:] if "script.py(" in line] == [
        f"  {tmp_path}/script.py(22)<module>()",
        f"  {tmp_path}/script.py(18)kernel()",
        f"> {tmp_path}/script.py(7)scaled()",
    ]


def test_breakpoints_may_wait_for_a_program(tmp_path: Path) -> None:
    script = write(tmp_path)
    output = at_prompt(script, ["p pid[1]", "c"], "--at-program", "3")
    assert output[3:5] == [
        "program (3, 0, 0) is row 1 of values that differ between programs: p name[1]",
        "np.int32(3)",
    ]
    assert at_prompt(script, ["p pid", "c"], "--at-program", "1")[0] == "result 87.0"


def test_a_finding_opens_the_debugger_where_the_chosen_program_shows_it(tmp_path: Path) -> None:
    script = write(tmp_path, "pass", "kernel[(4,)](x, out, 31, BLOCK=8)")
    options = ("--break-on", "out-of-bounds", "--at-program")
    output = at_prompt(script, ["p mask", "c", "c"], *options, "3")
    assert output[0] == f"error: out-of-bounds in kernel ({tmp_path}/script.py:15)"
    assert any(line.startswith("int1[8], 4 programs: [[ True") for line in output)
    assert "result" in at_prompt(script, ["p mask", "c", "c"], *options, "0")[0]


def test_a_finding_names_the_row_of_the_program_that_shows_it(tmp_path: Path) -> None:
    script = write(tmp_path, "pass", "kernel[(4,)](x, out, 31, BLOCK=8)")
    output = at_prompt(script, ["p pid[3]", "q"], "--break-on", "out-of-bounds")
    assert "program (3, 0, 0) is row 3 of values that differ between programs: p name[3]" in output
    assert "np.int32(3)" in output


MADE_IN_A_LOOP = """\
import numpy as np
import triton
import triton.language as tl

@triton.jit
def kernel(x, out, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(out + offsets)
    for k in range(2):
        values = tl.load(x + k * 8 + offsets)
        largest = tl.max(values, 0)
        total += tl.exp(values - largest)
        largest = 0.0
    tl.store(out + offsets, total)

x, out = np.zeros(16, "f4"), np.ones(8, "f4")
x[12:] = -np.inf
kernel[(2,)](x, out, BLOCK=4)
print("result", out.tolist())
"""


def test_nan_is_stopped_at_where_it_is_made_with_its_operands(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(MADE_IN_A_LOOP)
    commands = ["p k", "p largest.tolist()", "p values[1].tolist()", "n", "p np.isnan(total).tolist()", "c"]
    output = at_prompt(script, commands, "--break-on", "nan-result")
    assert output[0] == f"warning: nan-result in kernel ({script}:12)"
    start = output.index("the launch is executed again, up to where this is made:")
    assert output[start + 1 : start + 8] == [
        f"> {script}(12)kernel()",
        "-> total += tl.exp(values - largest)",
        "programs: (0, 0, 0), (1, 0, 0), of a grid of (2, 1, 1)",
        "program (1, 0, 0) is row 1 of values that differ between programs: p name[1]",
        "int32[]: 1",
        "[0.0, -inf]",
        "[-inf, -inf, -inf, -inf]",
    ]
    assert output[start + 8] == f"> {script}(13)kernel()"
    assert str([[False] * 4, [True] * 4]) in output
    assert "result [3.0, 3.0, 3.0, 3.0, nan, nan, nan, nan]" in output
    assert "result" in at_prompt(script, [], "--break-on", "nan-result", "--at-program", "0")[0]


def test_quitting_where_nan_is_made_ends_the_program(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(MADE_IN_A_LOOP)
    done = debugged(script, ["q"], "--break-on", "nan-result")
    assert (done.returncode, done.stdout.count("(Pdb)")) == (3, 1)
    assert done.stderr == f"{QUIT}\nNext: bragg check {script}\n"


QUIT = "the program ended where its debugger was quit; what comes after that was not executed"


def test_quitting_ends_the_program_without_a_traceback(tmp_path: Path) -> None:
    script = write(tmp_path)
    assert at_prompt(script, ["q"])[-1] == "no findings in 1 launch of 4 programs"
    assert debugged(script, []).stderr.splitlines()[0] == QUIT  # The end of input quits, too.


def test_quitting_at_a_finding_ends_the_program(tmp_path: Path) -> None:
    script = write(tmp_path, "pass", "kernel[(4,)](x, out, 31, BLOCK=8)")
    done = debugged(script, ["q", "p 'still here'"], "--break-on", "out-of-bounds")
    assert done.stdout.splitlines()[-1].replace("(Pdb) ", "") == "1 error in 1 launch of 4 programs"
    assert done.stdout.count("(Pdb)") == 1
    assert done.returncode == 3
    assert done.stderr == f"{QUIT}\nNext: bragg check {script}\n"


def test_pointers_are_arrays_of_elements_and_a_name_may_have_no_value_yet_at_the_prompt(tmp_path: Path) -> None:
    script = write(tmp_path)
    stops = "for _ in range(1):\n        breakpoint()\n        product = block * factor"
    text = script.read_text().replace("product = block * factor", stops)
    script.write_text(text.replace("return product", "return block * factor"))
    asked = ["p int((x + offsets).min())", "p (x + offsets)[1].tolist()", "p np.max(x + offsets, axis=1).tolist()"]
    asked_of_none = ["p product[0]", "p np.isnan(product)"]
    output = at_prompt(script, [*STEP_TO_NEXT, *asked, "c", *STEP_TO_NEXT, "p product", *asked_of_none, "q"])
    start = output.index("16")
    assert output[start + 1 : start + 3] == [str([*range(24, 32)]), "[23, 31]"]
    fault = "*** bragg.debug.faults.KernelFault: a name is used that is not assigned on every way here"
    assert output[-4:-1] == ["<no value yet, or not on every way here>", fault, fault]


def test_the_kernels_own_expressions_of_two_axes_work_at_the_prompt(tmp_path: Path) -> None:
    script = write(tmp_path)
    asked = ["p (x + offsets[:, None] * 2 + tl.arange(0, 2)[None, :]).max()", "p (offsets[:, None] < n).shape"]
    asked += ["p tl.sum(values[:, None] * values[None, :], 1).max()", "p offsets[:, None][1, 2].tolist()"]
    asked += ["p int(np.isnan(values).sum())", "p x + offsets[1]", "c"]
    output = at_prompt(script, [*STEP_TO_NEXT, *asked])[3 + 3 * len(STEP_TO_NEXT) :]
    shown = [line.replace("np.", "").replace("int64(", "").replace("float32(", "").rstrip(")") for line in output]
    assert shown[:5] == ["63", "(8, 1", str(29.0 * sum(range(24, 30))), "[26]", "0"]
    assert output[5] == (
        "*** bragg.debug.faults.KernelFault: a number or a tensor is needed here, not an array of NumPy; "
        "at a prompt choose a program last: (x + offsets)[1]"
    )


@pytest.mark.parametrize("place", ["15", "script.py:15"])
def test_a_line_is_a_breakpoint_without_a_change_of_the_text(tmp_path: Path, place: str) -> None:
    script = write(tmp_path, "pass")
    file = "" if place == "15" else f"{tmp_path}/"
    output = at_prompt(script, ["p mask.sum(axis=1).tolist()", "n", "c"], "--break", f"{file}{place}")
    assert output == [
        f"> {tmp_path}/script.py(15)kernel()",
        "-> values = tl.load(x + offsets, mask=mask, other=0.0)",
        "programs: (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), of a grid of (4, 1, 1)",
        "[8, 8, 8, 6]",
        f"> {tmp_path}/script.py(16)kernel()",
        "-> if pid >= 2:",
        "programs: (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), of a grid of (4, 1, 1)",
        "result 87.0",
        "no findings in 1 launch of 4 programs",
    ]


def test_a_line_is_stopped_at_by_those_that_get_there(tmp_path: Path) -> None:
    script = write(tmp_path, "pass")
    assert "programs: (2, 0, 0), (3, 0, 0), of a grid of (4, 1, 1)" in at_prompt(script, ["c"], "--break", "18")
    done = debugged(script, [], "--break", "7", "--at-program", "1")
    assert "nor line 7 with program (1, 0, 0)" in done.stderr


def test_a_line_that_no_kernel_has_is_refused_before_anything_runs(tmp_path: Path) -> None:
    script = write(tmp_path, "pass")
    done = debugged(script, [], "--break", "80")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"error: {script}:80 is no statement of a function",
        f"hint: Kernels of {script}: scaled (lines 7 to 8), kernel (lines 12 to 19)",
    ]


@pytest.mark.parametrize("options", [["--break", "15"], ["--break-on", "out-of-bounds"]])
def test_a_breakpoint_that_is_typed_at_a_chosen_stop_is_stopped_at(tmp_path: Path, options: list[str]) -> None:
    script = write(tmp_path, "pass", "kernel[(4,)](x, out, 31, BLOCK=8)")
    output = at_prompt(script, ["b 18", "c", "n", "c", "c"], *options)
    places = [line.rpartition("/")[2] for line in output if line.startswith("> ")]
    assert places[:3] == ["script.py(15)kernel()", "script.py(18)kernel()", "script.py(19)kernel()"]
    assert output[-1] == "2 errors in 1 launch of 4 programs"


def test_breakpoints_are_kept_from_stop_to_stop_until_they_are_cleared(tmp_path: Path) -> None:
    script = write(tmp_path, "pass", "for _ in range(3): kernel[(4,)](x, out, 30, BLOCK=8)")
    output = at_prompt(script, ["b 19", "c", "c", "cl 1", "c", "c"], "--break", "15")
    places = [line.rpartition("/")[2] for line in output if line.startswith("> ")]
    assert places == [f"script.py({line})kernel()" for line in (15, 19, 15, 15)]
    assert output[-1] == "no findings in 3 launches of 12 programs"


def test_next_at_a_chosen_stop_does_not_enter_a_helper(tmp_path: Path) -> None:
    output = at_prompt(write(tmp_path, "pass"), ["n", "c"], "--break", "18")
    assert [line.rpartition("/")[2] for line in output if line.startswith("> ")][1] == "script.py(19)kernel()"


def test_what_never_stopped_says_how_to_stop(tmp_path: Path) -> None:
    done = debugged(write(tmp_path, "pass"), [], "--break-on", "out-of-bounds")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "nothing stopped: no breakpoint() in a kernel was reached, and out-of-bounds found nothing to stop at",
        "hint: Write breakpoint() into a kernel, or stop at a finding: bragg debug --break-on out-of-bounds …",
    ]
    assert debugged(write(tmp_path), ["c"]).stderr == ""


def test_one_program_alone_is_not_stopped_at_a_race(tmp_path: Path) -> None:
    done = debugged(write(tmp_path, "pass"), [], "--break-on", "data-race", "--program", "1")
    assert done.stderr.splitlines()[1] == (
        "hint: --program executes one program, which races with no other: --at-program 1,0,0 executes all of them"
    )


def test_a_debugger_that_the_environment_names_is_left_alone(tmp_path: Path) -> None:
    assert at_prompt(write(tmp_path), [], PYTHONBREAKPOINT="0")[0] == "result 87.0"


def test_watch_says_at_the_end_who_wrote_last(tmp_path: Path) -> None:
    run = "kernel[(4,)](x, out, 30, BLOCK=8); kernel[(2,)](out, out, 16, BLOCK=8)"
    watched = [argument for text in ("out[9]", "x[1]", "y[0]") for argument in ("--watch", text)]
    output = at_prompt(write(tmp_path, "pass", run), [], *watched)
    where = f"by program (1, 0, 0) of kernel at {tmp_path}/script.py:19: tl.store(out + offsets, values, mask=mask)"
    assert output[:2] == [f"watch: out[9] = 9.0 {where}"] * 2
    assert output[-3:] == [
        f"watch: out[9], last: = 9.0 {where}",
        "watch: x[1], last: nothing wrote it",
        "watch: y[0], last: no launch had such a parameter; tensors were x, out",
    ]


def test_pdb_works_at_a_terminal_without_the_command(tmp_path: Path) -> None:
    run = "import bragg.debug\nwith bragg.debug.interpret():\n    kernel[(4,)](x, out, 30, BLOCK=8)"
    controller, terminal = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, str(write(tmp_path, run=run))], stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    os.write(controller, b"p values\nc\n")
    assert program.wait(TIMEOUT_S) == 0
    output = os.read(controller, 1 << 16).decode()
    os.close(controller)
    assert f"script.py({18 - len(STEP_TO_NEXT)})kernel()" in output
    assert "fp32[8], 2 programs: [[16. 17. 18." in output
    assert "result 87.0" in output


def test_an_ide_stops_at_a_line_of_a_kernel(tmp_path: Path) -> None:
    pytest.importorskip("debugpy")
    script = write(tmp_path, "pass")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-Xfrozen_modules=off", "-m", "debugpy", "--listen", f"127.0.0.1:{port}"]
    command += ["--wait-for-client", "-m", "bragg", "check", str(script)]
    output = tmp_path / "output"
    with output.open("w") as file:
        program = subprocess.Popen(command, stdout=file)
    ide = connect(port)
    try:
        ide.ask("initialize", adapterID="test")
        ide.send("attach", justMyCode=True)
        ide.event("initialized")
        lines = [line_of(script, "product ="), line_of(script, "tl.store")]
        ide.ask("setBreakpoints", source={"path": str(script)}, breakpoints=[{"line": line} for line in lines])
        ide.ask("configurationDone")
        seen = [stop(ide) for _ in lines]
        assert seen == [
            (lines[0], "scaled", {"block": "fp32[8], 2 programs: [[16. 17. 18.", "block[-1].mean()": "19.875"}),
            (lines[1], "kernel", {"values": "fp32[8], 4 programs: [[ 0.  1.  2.", "values[-1].mean()": "59.625"}),
        ]
        assert program.wait(TIMEOUT_S) == 0
        assert output.read_text().splitlines()[0] == "result 87.0"
    finally:
        ide.close()
        program.kill()
        program.wait()


def connect(port: int) -> DebugAdapter:
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return DebugAdapter(port, TIMEOUT_S)
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.05)


def stop(ide: DebugAdapter) -> tuple[int, str, dict[str, str]]:
    """Where the program has stopped and the start of one value there; the program goes on."""
    thread = ide.event("stopped")["threadId"]
    frame = ide.ask("stackTrace", threadId=thread)["stackFrames"][0]
    scope = ide.ask("scopes", frameId=frame["id"])["scopes"][0]
    found = ide.ask("variables", variablesReference=scope["variablesReference"])["variables"]
    values = {one["name"]: one["value"][:34] for one in found if one["name"] in ("block", "values")}
    for name in list(values):
        asked = ide.ask("evaluate", expression=f"{name}[-1].mean()", frameId=frame["id"], context="repl")
        values[f"{name}[-1].mean()"] = asked["result"].removeprefix("np.float32(").rstrip(")")
    ide.ask("continue", threadId=thread)
    return frame["line"], frame["name"], values


def test_cells_of_a_notebook_define_and_debug_kernels(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    kernel = SCRIPT.partition("x, out =")[0].replace("STOP", "print('values', values)")
    cells = [
        kernel,
        "import bragg.debug\nx, out = np.arange(30, dtype='f4'), np.zeros(30, 'f4')\n"
        "with bragg.debug.interpret():\n    kernel[(4,)](x, out, 30, BLOCK=8)\nprint(out[29])",
        "with bragg.debug.check() as report:\n    kernel[(4,)](x, out, 31, BLOCK=8)\nreport.findings[0]",
        kernel.replace("scaled(values, 3.0)", "scaled(values, 5.0)"),
        "bragg.debug.interpret(kernel)[(4,)](x, out, 30, BLOCK=8)\nprint(out[29])",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name="python3").execute()
    texts = ["".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells]
    assert texts[1].splitlines()[-1] == "87.0"
    assert "pid (2, 0, 0) values [16. 17. 18. 19. 20. 21. 22. 23.]" in texts[1]
    assert "values = tl.load(x + offsets, mask=mask, other=0.0)" in str(notebook.cells[2].outputs[-1])
    assert texts[4].splitlines()[-1] == "145.0"


def test_a_notebooks_frontend_answers_the_prompt_of_a_kernel(tmp_path: Path) -> None:
    """By the messages that Jupyter and Colab exchange with the process of a notebook."""
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    cell = SCRIPT.replace("STOP", "import pdb; pdb.set_trace()").partition("x, out =")[0]
    run = "import bragg.debug\nx, out = np.arange(30, dtype='f4'), np.zeros(30, 'f4')\n"
    run += "with bragg.debug.interpret():\n    kernel[(4,)](x, out, 30, BLOCK=8)\nprint('result', out[29])"
    process, client = manager.start_new_kernel(kernel_name="python3", cwd=str(tmp_path), startup_timeout=TIMEOUT_S)
    try:
        typed = iter(["p values.mean()", "p values[1, 2:4]", "c"])
        said: list[str] = []
        for text in (cell, run):
            reply = client.execute_interactive(
                text,
                timeout=TIMEOUT_S,
                allow_stdin=True,
                stdin_hook=lambda _message: client.input(next(typed)),
                output_hook=lambda message: said.append(message["content"].get("text", "")),
            )
            assert reply["content"]["status"] == "ok", reply["content"]
        assert list(typed) == []
        output = "".join(said)
        assert "19.6875" in output
        assert "26., 27." in output
        assert "result 87.0" in output
    finally:
        client.stop_channels()
        process.shutdown_kernel(now=True)
