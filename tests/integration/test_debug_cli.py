"""`bragg check` and `bragg debug` on real scripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.support.forked_bragg import forked_bragg as bragg

pytest.importorskip("triton")

SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n, other=0.0)
    if tl.sum(values, 0) > 100:
        STOP
        values = values * 2
    tl.store(out + offsets, values, mask=offsets < n + EXTRA)

x, out = np.arange(30, dtype="f4"), np.zeros(30, "f4")
scale[(4,)](x, out, 30, BLOCK=8)
assert out[29] == 58.0, out
print("arguments", sys.argv[1:])
END
"""


PROMPT = "p values\np offsets.shape\np values.mean()\nc\n"
CLEAN = [
    "clean for these values: 1 launch",
    "  scale (script.py:11): the condition depends on data",
    "no findings in 1 launch of 4 programs",
]


def write(directory: Path, *, extra: int = 0, stop: str = "pass", end: str = "") -> Path:
    script = directory / "script.py"
    script.write_text(SCRIPT.replace("EXTRA", str(extra)).replace("STOP", stop).replace("END", end))
    return script


@pytest.mark.parametrize("is_forked", [False, True])
def test_a_correct_script_runs_to_its_end(tmp_path: Path, is_forked: bool) -> None:
    arguments = ["check", str(script := write(tmp_path)), "--a", "b"]
    command = [sys.executable, "-m", "bragg", *arguments]
    result = bragg(*arguments) if is_forked else subprocess.run(command, capture_output=True, text=True, check=False)
    more = f"Next: bragg check --all {script} --a b  (also in another order and with other block sizes)\n"
    assert (result.returncode, result.stderr) == (0, more)
    lines = result.stdout.replace(f"{tmp_path}/", "").splitlines()
    assert lines == ["arguments ['--a', 'b']", *CLEAN]


def test_findings_give_exit_code_3_and_text(tmp_path: Path) -> None:
    result = bragg("check", write(tmp_path, extra=1))
    assert result.returncode == 3
    assert f"error: out-of-bounds in scale ({tmp_path}/script.py:14)" in result.stdout
    assert "program (3, 0, 0), lane 6, offset 30" in result.stdout


def test_json_is_one_object_on_the_last_line(tmp_path: Path) -> None:
    result = bragg("check", "--json", write(tmp_path, extra=1))
    report = json.loads(result.stdout.splitlines()[-1])
    assert (report["schema"], report["view"]) == ("bragg/1", "check")
    (finding,) = report["findings"]
    assert (finding["rule"], finding["line"], finding["mask"]) == ("out-of-bounds", 14, "offsets < n + 1")


def test_exit_code_and_traceback_are_the_scripts_own(tmp_path: Path) -> None:
    assert bragg("check", write(tmp_path, end="sys.exit(7)")).returncode == 7
    result = bragg("check", write(tmp_path, end="1 / 0"))
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "bragg/" not in result.stderr


def test_a_kernels_own_exception_shows_the_kernels_line_alone(tmp_path: Path) -> None:
    result = bragg("check", write(tmp_path, stop="values.missing_function()"))
    assert result.returncode == 2
    assert f"error: {tmp_path}/script.py:12: triton.language.missing_function is not supported" in result.stderr
    result = bragg("check", write(tmp_path, stop="(1, 2)[5]"))
    assert result.returncode == 1
    assert "(1, 2)[5]" in result.stderr
    assert "bragg/debug" not in result.stderr


def test_what_the_engine_does_not_execute_is_named_with_its_line(tmp_path: Path) -> None:
    result = bragg("check", write(tmp_path, stop="a = b = values"))
    assert result.returncode == 2
    assert f"{tmp_path}/script.py:12: an assignment to several targets at once is not supported" in result.stderr


def test_one_program_of_the_grid_can_be_executed_alone(tmp_path: Path) -> None:
    result = bragg("check", "--program", "3", write(tmp_path))
    assert "in 1 launch of 1 program" in result.stdout
    assert bragg("check", "--program", "9", write(tmp_path)).returncode == 2


@pytest.mark.parametrize("arguments", [["check"], ["check", "missing.py"], ["check", "-m", "missing_module"]])
def test_a_missing_program_is_a_usage_error(arguments: list[str]) -> None:
    result = bragg(*arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_breakpoint_stops_in_the_kernel_with_the_values_of_all_programs(tmp_path: Path) -> None:
    result = bragg("debug", write(tmp_path, stop="breakpoint()"), text=PROMPT)
    assert f"> {tmp_path}/script.py(1" in result.stdout
    assert "fp32[8], 2 programs: [[16. 17." in result.stdout
    assert "(8,)" in result.stdout
    assert "19.6875" in result.stdout


def test_debugger_opens_where_a_checker_finds_something(tmp_path: Path) -> None:
    result = bragg("debug", "--break-on", "out-of-bounds", write(tmp_path, extra=1), text="p n\nc\n")
    assert result.returncode == 3
    assert "int32[]: 30" in result.stdout
    assert bragg("debug", "--break-on", "bounds", write(tmp_path)).returncode == 2


def test_tensors_that_a_script_asks_for_on_cuda_are_checked_on_the_cpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = write(tmp_path, extra=1)
    made = 'import torch; x, out = torch.arange(30.0, device="cuda"), torch.zeros(30).to("cuda"); assert out.is_cuda'
    script.write_text(script.read_text().replace('x, out = np.arange(30, dtype="f4"), np.zeros(30, "f4")', made))
    result = bragg("check", script)
    assert result.returncode == 3, result.stderr
    assert "tensor: out (fp32[30], strides [1])" in result.stdout


def test_cuda_as_the_default_device_is_the_cpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text('import torch, triton\ntorch.set_default_device("cuda")\nassert torch.ones(3).sum() == 3\n')
    result = bragg("check", script)
    assert result.returncode == 7, result.stderr  # It has no kernel.


def test_watch_says_who_writes_an_element(tmp_path: Path) -> None:
    result = bragg("debug", "--watch", "out[29]", write(tmp_path))
    assert f"watch: out[29] = 58.0 by program (3, 0, 0) of scale at {tmp_path}/script.py:14: tl.store(" in result.stdout
    near = bragg("debug", "--watch", "ou[29]", write(tmp_path))
    assert near.stdout.splitlines()[-1] == "watch: ou[29], last: no launch had such a parameter; did you mean out?"
    assert bragg("debug", "--watch", "out[30]", write(tmp_path)).returncode == 2
    assert bragg("debug", "--watch", "out", write(tmp_path)).returncode == 2


ENDLESS = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def endless(out):
    tl.store(out - 1, 1)
    tl.device_print("under way")
    number = 0
    while number >= 0:
        number = number * 1

endless[(1,)](np.zeros(4, "i4"))
"""


def test_limit_ends_a_launch_with_exit_code_5(tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    result = bragg("check", "--limit", "0.2", script)
    assert result.returncode == 5
    assert f"kernel endless ({script}:6) took longer than --limit 0.2 s" in result.stderr
    assert "out-of-bounds" in result.stdout


def test_ctrl_c_shows_what_was_found(tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    command = [sys.executable, "-m", "bragg", "check", str(script)]
    heeds_ctrl_c = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # which a shell's background jobs do not
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeds_ctrl_c,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as check:
        assert check.stdout is not None
        assert check.stdout.readline().endswith("under way\n")
        check.send_signal(signal.SIGINT)
        output, talk = check.communicate(timeout=300)
    assert check.returncode == 3
    assert "out-of-bounds in endless" in output
    said = [line for line in talk.splitlines() if " has run for " not in line]  # said each 10 s, on a slow machine
    assert said == ["stopped by Ctrl-C: what was not executed was not checked"]


def test_tensor_beyond_the_memory_is_one_line(tmp_path: Path) -> None:
    script = tmp_path / "big.py"
    script.write_text("import numpy as np\nimport triton\n\nnp.zeros(1 << 60, 'f4')\n")
    result = bragg("check", script)
    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == (
        f"{script}:4: 4.00 EiB do not fit into this machine's memory, where tensors of a GPU are while a program is "
        "checked: check with smaller sizes"
    )
    assert "Traceback" not in result.stderr


def test_the_last_line_names_the_command_that_stops_at_the_first_finding(tmp_path: Path) -> None:
    script = write(tmp_path, extra=1)
    assert bragg("check", script).stderr.splitlines()[-1] == f"Next: bragg debug --break-on out-of-bounds {script}"
    assert "Next:" not in bragg("check", "--json", script).stderr
    clean = write(tmp_path)
    assert bragg("check", clean).stderr.startswith(f"Next: bragg check --all {clean}  (also in another order ")
    assert "Next:" not in bragg("check", "--all", clean).stderr


def test_options_behind_the_program_are_answered_with_the_order(tmp_path: Path) -> None:
    script = write(tmp_path)
    hint = f"hint: --only went to {script}; options of bragg stand before it: bragg check --only … {script}\n"
    assert bragg("check", script, "--only", "data-race").stderr.startswith(hint)
    assert f"hint: --break-on went to {script}" in bragg("debug", script, "--break-on", "data-race").stderr


def test_a_script_that_is_not_there_is_answered_with_what_may_be_meant(tmp_path: Path) -> None:
    script = write(tmp_path)
    near = bragg("check", script.with_name("scirpt.py"))
    assert (near.returncode, near.stderr.splitlines()[-1]) == (2, f"hint: Did you mean {script}?")
    assert bragg("check", "python3", script).stderr.splitlines()[-1] == f"hint: The script stands alone: {script}"
    assert bragg("check", "nothing_like_it").stderr.splitlines()[-1] == "hint: A module is run with -m"


def test_launches_are_varied_on_request(tmp_path: Path) -> None:
    pushed = "out[0] = 0; scale[lambda meta: (30 // meta['BLOCK'],)](np.ones(30, 'f4'), out, 30, BLOCK=16)"
    script = write(tmp_path, end=pushed)
    assert bragg("check", script).returncode == 0
    result = bragg("check", "--vary", script)
    assert result.returncode == 3, result.stderr
    assert "elements of out change with BLOCK, which should not matter" in result.stdout


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("print('no kernel')", 7, "the program has no Triton kernels"),
        ("import sys; sys.exit(5)", 5, "the program failed with exit code 5 before it launched a Triton kernel"),
    ],
)
def test_a_program_without_kernels_is_not_fine(tmp_path: Path, text: str, code: int, reason: str) -> None:
    (tmp_path / "plain.py").write_text(text)
    done = bragg("check", "plain.py", directory=tmp_path)
    assert done.returncode == code
    assert done.stderr.startswith(f"nothing was checked: {reason}")


GENERATED = """
import linecache, sys
import numpy as np, triton, triton.language as tl

text = '''
@triton.jit
def doubled(x):
    return x + x

@triton.jit
def kernel(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, doubled(tl.load(x + i)))
'''
linecache.cache["generated.py"] = len(text), None, text.splitlines(True), "generated.py"
names = {"triton": triton, "tl": tl}
exec(compile(text, "generated.py", "exec"), names)
assert names["kernel"].fn.__module__ is None
if len(sys.argv) > 1:
    x = np.ones(4, "f4")
    names["kernel"][(1,)](x, N=4)
    print(x.tolist())
"""


def test_generated_kernels_may_be_of_no_module(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(GENERATED)
    launched, idle = (bragg("check", "made.py", *words, directory=tmp_path) for words in (["launch"], []))
    assert (launched.returncode, launched.stdout.splitlines()[0]) == (0, "[2.0, 2.0, 2.0, 2.0]")
    assert idle.returncode == 7
    assert "launched none of its Triton functions: doubled (generated.py:2), kernel (generated.py:6)" in idle.stderr
