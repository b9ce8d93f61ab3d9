"""The process of a Colab notebook, where it is another one than Jupyter's: `python -m tests.support.colab_kernel`.

Its shell sends errors itself, gives cell magics with options and no cell a cell of one space, and clears warnings
before each cell. `google.colab.output.eval_js` asks the page by a `colab_request`, and waits at stdin for the answer.
"""

from __future__ import annotations

import sys
import time
import types
import uuid
from typing import Any

import zmq
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core import events
from traitlets import Type

TIMEOUT_S = 60


class Shell(ZMQInteractiveShell):
    """Colab's shell."""

    def init_events(self) -> None:
        self.events = events.EventManager(self, events.available_events)
        self.events.register("pre_execute", lambda: sys.modules["__main__"].__dict__.pop("__warningregistry__", None))

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        return super().run_cell_magic(magic_name, line, cell or (" " if line else cell))

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        content = {"traceback": stb, "ename": etype.__name__, "evalue": str(evalue)}
        hook = self.displayhook
        hook.session.send(hook.pub_socket, "error", content, hook.parent_header)
        self._last_traceback = stb


class Kernel(IPythonKernel):
    """Colab's kernel."""

    shell_class = Type(Shell)


def eval_js(script: str) -> Any:
    """What the page answers."""
    app = IPKernelApp.instance()
    number = str(uuid.uuid4())
    metadata = {"colab_msg_id": number, "colab_request_type": "eval_js"}
    parent = {"header": app.kernel.shell.parent_header["header"]}
    message = app.session.msg("colab_request", content={"request": script}, metadata=metadata, parent=parent)
    app.session.send(app.iopub_socket, message)
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if app.kernel.stdin_socket.poll(25):
            _, reply = app.kernel.session.recv(app.kernel.stdin_socket, zmq.NOBLOCK)
            value = reply["content"]["value"]
            if isinstance(value, dict) and value.get("colab_msg_id") == number:
                return value.get("data")
    raise TimeoutError(script)


def _install() -> None:
    google, colab, output = (types.ModuleType(name) for name in ("google", "google.colab", "google.colab.output"))
    google.colab, colab.output, output.eval_js = colab, output, eval_js  # type: ignore[attr-defined]
    Shell.__module__, Kernel.__module__ = "google.colab._shell", "google.colab._kernel"
    sys.modules.update({module.__name__: module for module in (google, colab, output)})


if __name__ == "__main__":
    _install()
    IPKernelApp.launch_instance(kernel_class=Kernel)
