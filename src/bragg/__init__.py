"""A profiler for GPU programs: where the time goes, along the whole call path.

Importing this package has no effect: every public name is looked up, and its module loaded, at first use.

PYTEST_DONT_REWRITE: pytest warns of a plugin's package that is loaded before it, as `bragg run` does.
"""

from __future__ import annotations

TYPE_CHECKING = False  # Type checkers read it as true; importing `typing` for it would take 5 ms.
if TYPE_CHECKING:
    from typing import Any

    from bragg import errors
    from bragg.bench import do_bench, do_bench_cudagraph
    from bragg.formats import finish, load, load_job, read_capture
    from bragg.model import Profile
    from bragg.record.inside.kernel_scope import kernel_scope
    from bragg.record.inside.metric_values import record_metrics
    from bragg.record.inside.scope import enter_scope, exit_scope, scope
    from bragg.record.inside.session import Session
    from bragg.record.inside.sessions import Sessions
    from bragg.record.instrument.choice import instrument

__all__ = [
    "Profile",
    "Session",
    "__version__",
    "activate",
    "deactivate",
    "do_bench",
    "do_bench_cudagraph",
    "enter_scope",
    "errors",
    "exit_scope",
    "instrument",
    "kernel_event_begin",
    "kernel_event_end",
    "kernel_scope",
    "load",
    "load_job",
    "profile",
    "record_metrics",
    "scope",
    "start",
    "stop",
]

__version__ = "0.1.0"

_PLACES = {
    "Profile": "bragg.model:Profile",
    "Session": "bragg.record.inside.session:Session",
    "do_bench": "bragg.bench:do_bench",
    "do_bench_cudagraph": "bragg.bench:do_bench_cudagraph",
    "enter_scope": "bragg.record.inside.scope:enter_scope",
    "errors": "bragg.errors",
    "exit_scope": "bragg.record.inside.scope:exit_scope",
    "instrument": "bragg.record.instrument.choice:instrument",
    "kernel_event_begin": "bragg.record.inside.kernel_scope:kernel_event_begin",
    "kernel_event_end": "bragg.record.inside.kernel_scope:kernel_event_end",
    "kernel_scope": "bragg.record.inside.kernel_scope:kernel_scope",
    "load": "bragg.formats:load",
    "load_job": "bragg.formats:load_job",
    "load_ipython_extension": "bragg.notebook.magic:load_ipython_extension",
    "record_metrics": "bragg.record.inside.metric_values:record_metrics",
    "scope": "bragg.record.inside.scope:scope",
}


def __getattr__(name: str) -> Any:
    """Load a public name; it is an ordinary attribute from then on."""
    from bragg.registry import load

    if name in _PLACES:
        value = load(_PLACES[name])
    elif name == "_sessions":
        readers = load("bragg.formats:finish"), load("bragg.formats:read_capture")
        load("bragg.code.reading")  # They import it, which is too late when the interpreter ends: it may need threads.
        value = load("bragg.record.inside.sessions:Sessions")(*readers)
    elif name in __all__:
        value = getattr(__getattr__("_sessions"), name)
    else:
        raise AttributeError(f"module 'bragg' has no attribute {name!r}")
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    _sessions = Sessions(finish, read_capture)
    start = _sessions.start
    stop = _sessions.stop
    activate = _sessions.activate
    deactivate = _sessions.deactivate
    profile = _sessions.profile
