"""What a program launches at its end, or beside its end, is executed by `bragg check`, or refused aloud."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("triton")

from tests.integration.test_debug_launches import HEAD, KERNEL, found_in, run_check

IMPORTS = "import atexit, time, weakref\nfrom concurrent.futures import ThreadPoolExecutor\n"
LAUNCH = "[(1,)](np.zeros(16, 'f4'), {n}, B=32)"

# The first store outside of its array, in a kernel of that name.
AT_THE_END = {
    "at_exit": "atexit.register(launch)",
    "from_a_handler": "atexit.register(lambda: atexit.register(launch))",
    "finalized": "kept = threading.Event(); weakref.finalize(kept, launch)",
    "in_a_thread": "threading.Thread(target=lambda: (time.sleep(0.2), launch())).start()",
    "in_an_executor": "ThreadPoolExecutor(1).submit(lambda: (time.sleep(0.2), launch()))",
    "in_a_process": "multiprocessing.get_context('fork').Process(target=lambda: (time.sleep(0.2), launch())).start()",
    "forked": "if os.fork() == 0:\n    time.sleep(0.2)\n    launch()\n    os._exit(0)",
    "left_behind": "subprocess.Popen(args=[sys.executable, 'other.py'], env={'PATH': '', 'PYTHONPATH': 'own'})",
}
NOT_REGISTERED = "atexit.register(print, 'not called')\natexit.unregister(print)\n"


def launches(name: str, n: int = 17) -> str:
    return f"{KERNEL.format(name=name)}\ndef launch(): {name}{LAUNCH.format(n=n)}\n"


def test_what_a_program_launches_at_its_end_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAGG_CHECK_WAIT_S", "300")  # a busy machine takes more than 10 s to import Triton
    parts = [f"{launches(name)}\n{way}\n" for name, way in AT_THE_END.items()]
    # Each way calls its own function, whatever `launch` means at the end.
    parts = [part.replace("launch", f"launch_{k}") for k, part in enumerate(parts)]
    (tmp_path / "other.py").write_text(f"{HEAD}{launches('left_behind')}\nlaunch()")
    code, report, output = run_check(tmp_path, "".join([HEAD, IMPORTS, NOT_REGISTERED, *parts]))
    assert found_in(report) == set(AT_THE_END), output
    assert (code, report["launches"], report["not_executed"]) == (3, len(AT_THE_END), []), output
    assert "not called" not in output


@pytest.mark.parametrize(("n", "expected"), [(16, 0), (17, 3)])
def test_a_program_that_ends_its_process_itself_is_reported(tmp_path: Path, n: int, expected: int) -> None:
    code, report, output = run_check(tmp_path, f"{HEAD}{launches('k', n)}\nlaunch()\nos._exit(0)")
    assert (code, report["launches"]) == (expected, 1), output


def test_a_program_that_replaces_its_process_is_followed(tmp_path: Path) -> None:
    again = "if len(sys.argv) == 1:\n    os.execv(sys.executable, [sys.executable, __file__, 'again'])\nlaunch()"
    code, report, output = run_check(tmp_path, f"{HEAD}{launches('k')}\n{again}")
    assert (code, found_in(report), report["launches"]) == (3, {"k"}, 1), output


DESTROYED = """
class Owner:
    def __init__(self): self.launch = launch
    def __del__(self): self.launch()

import types
sys.modules["owning"] = types.ModuleType("owning")
sys.modules["owning"].owner = Owner()
launch()
"""


def test_launches_while_the_interpreter_ends_are_refused_aloud(tmp_path: Path) -> None:
    code, report, output = run_check(tmp_path, f"{HEAD}{launches('k', 16)}{DESTROYED}")
    assert (code, report["launches"]) == (7, 1), output
    assert "launched while the interpreter ended, and was not checked" in output


REFUSED = """
launch()
source = triton.compiler.ASTSource(k, {'x': '*fp32', 'n': 'i32', 'B': 'constexpr'}, {'B': 32})
target = triton.runtime.driver.active.get_current_target()
open("k.ttir", "w").write(triton.compile(source, target=target).asm["ttir"])

def refused(): triton.compile("k.ttir", target=target)[(1, 1, 1)](np.zeros(16, 'f4'), 17, 32)

t = threading.Thread(target=refused); t.start(); t.join()
try: refused()
except Exception: pass
"""


def test_a_refusal_that_the_program_swallows_is_told(tmp_path: Path) -> None:
    code, report, output = run_check(tmp_path, f"{HEAD}{launches('k', 16)}{REFUSED}")
    assert (code, report["launches"]) == (7, 1), output
    assert [one["launches"] for one in report["not_executed"]] == [2]
    assert "not everything was checked: a kernel: a kernel that was compiled from MLIR" in output


SERVER = """
child = "import triton, time; print('ready', flush=True); time.sleep(60)"
server = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
server.stdout.readline()
launch()
print("server", server.pid)
"""


def test_a_process_that_goes_on_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAGG_CHECK_WAIT_S", "0.1")
    code, report, output = run_check(tmp_path, f"{HEAD}{launches('k', 16)}{SERVER}")
    os.kill(int(output.split("server ")[1].split()[0]), signal.SIGKILL)
    assert code == 7, output
    assert "still runs: it was not checked further" in report["not_executed"][0]["because"]


STARTED = """
if __name__ == "__main__":
    for name, function in (("spawn", {spawned}), ("forkserver", {served})):
        process = multiprocessing.get_context(name).Process(target=function)
        process.start()
        process.join()
"""


def test_processes_that_multiprocessing_starts_anew_are_executed(tmp_path: Path) -> None:
    kernels = [launches(name).replace("launch", f"launch_{name}") for name in ("spawned", "served")]
    start = STARTED.format(spawned="launch_spawned", served="launch_served")
    code, report, output = run_check(tmp_path, "".join([HEAD, *kernels, start]))
    assert (code, found_in(report)) == (3, {"spawned", "served"}), output
