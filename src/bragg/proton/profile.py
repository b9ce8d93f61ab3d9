"""Starting and ending sessions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, overload

from bragg.proton.errors import InvalidArgument
from bragg.proton.flags import flags
from bragg.proton.hooks.hook import Hook, HookManager
from bragg.proton.hooks.instrumentation import InstrumentationHook
from bragg.proton.hooks.launch import LaunchHook
from bragg.proton.mode import BaseMode
from bragg.proton.recording import sessions
from bragg.proton.recording.inside_session import InsideSession
from bragg.proton.recording.settings import INSIDE_PROFILER, Settings, default_profiler, is_disabled

__all__ = ["DEFAULT_PROFILE_NAME", "activate", "deactivate", "finalize", "profile", "start"]

DEFAULT_PROFILE_NAME = "proton"

_Function = TypeVar("_Function", bound=Callable[..., Any])


def start(
    name: str | None = None,
    *,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    mode: str | BaseMode | None = None,
    hook: str | Hook | None = None,
) -> int | None:
    """Start a session, or continue the running one of the same name.

    Args:
        name: Path of its files without the suffix; `proton` by default, in the working directory. Empty or `-`: the
            result is printed.
        context: What call paths hold: `shadow`, scopes and kernels; `python`, the Python frames too.
        data: `tree` sums up by call path, `trace` keeps every event.
        backend: What measures: `cupti`, `cpu` (scopes and their metrics alone), `instrumentation` (scopes inside of
            kernels, with Triton 3.6 to 3.9 on NVIDIA GPUs); None takes what is there.
        mode: `periodic_flushing`, with `:format=…`: each phase has a file, as soon as it is complete. `pcsampling`,
            with `:interval=<cycles>`: which instructions warps were at, by source line, while kernels run one at a
            time; with `:collection=continuous` they run as they would, and call paths share the samples of a kernel.
            Of `instrumentation`: `default` or `mma` with the options of `InstrumentationMode`, or such an object.
        hook: `triton` names kernels, and adds their metrics, by their `launch_metadata`; or a hook of your own.

    Returns:
        The number of the session; None when profiling is disabled, or the command line started the session.

    Raises:
        ValueError: An argument is unknown. All errors are also of the types that older versions of Proton raise.
        RuntimeError: What is asked for cannot measure here.
    """
    if flags.command_line or is_disabled():
        return None
    chosen = _find_hook(hook)
    inside = InstrumentationHook(mode or None) if backend == INSIDE_PROFILER else None  # type: ignore[arg-type]
    number = sessions.start(
        Settings.of(
            DEFAULT_PROFILE_NAME if name is None else name,
            context or "shadow",
            data or "tree",
            default_profiler() if backend is None else backend,
            str(mode) if mode else "",
        )
    )
    if chosen is not None:
        HookManager.register(chosen, number)
    session = sessions.find(number)
    if inside is not None and isinstance(session, InsideSession) and not _has_inside(number):
        inside.results = session.results
        _register_inside(inside, number)
    return number


def activate(session: int | None = None) -> None:
    """Record again.

    Args:
        session: The number of a session; None: all.

    Raises:
        IndexError: There is no such session.
    """
    _check_command_line(session, "activated")
    chosen = _chosen(session)
    HookManager.activate(session)
    for one in chosen:
        one.activate()


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Pause, without giving anything up.

    Args:
        session: The number of a session; None: all.
        flushing: Wait until all that was launched on the GPU is recorded.

    Raises:
        IndexError: There is no such session.
    """
    _check_command_line(session, "deactivated")
    chosen = _chosen(session)
    HookManager.deactivate(session)
    for one in chosen:
        one.deactivate(flushing=flushing)


def finalize(session: int | None = None, output_format: str | None = "") -> None:
    """End a session and write its files.

    Args:
        session: Its number; None: all, except that of the command line, which ends with the program.
        output_format: `hatchet`, `hatchet_msgpack` or `chrome_trace`; by default what fits the data.

    Raises:
        ValueError: The format is unknown, or does not fit; the session continues.
        IndexError: There never was such a session.
        RecordingFailed: The file cannot be written; what was recorded is kept, and named.
    """
    if flags.command_line and session is None:
        return
    _check_command_line(session, "finalized")
    sessions.finalize(session, output_format)
    HookManager.unregister(session)


@overload
def profile(func: _Function) -> _Function: ...
@overload
def profile(
    func: None = None,
    *,
    name: str | None = ...,
    context: str | None = ...,
    data: str | None = ...,
    backend: str | None = ...,
    mode: str | BaseMode | None = ...,
    hook: str | Hook | None = ...,
) -> Callable[[_Function], _Function]: ...
def profile(
    func: Any = None,
    *,
    name: str | None = None,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    mode: str | BaseMode | None = None,
    hook: str | Hook | None = None,
) -> Any:
    """Record each call of a function; the session is paused after it, and ends with `finalize`.

    Args:
        func: The function, where the decorator has no arguments.
        name: This and what follows: as for `start`.
        context: Of `start`.
        data: Of `start`.
        backend: Of `start`.
        mode: Of `start`.
        hook: Of `start`.
    """
    begin = partial(start, name, context=context, data=data, backend=backend, mode=mode, hook=hook)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            session = begin()
            try:
                return function(*arguments, **keywords)
            finally:
                if session is not None:
                    deactivate(session)

        return call

    return decorate if func is None else decorate(func)


def _has_inside(number: int) -> bool:
    return any(isinstance(hook, InstrumentationHook) for hook in HookManager.session_hooks.get(number, ()))


def _register_inside(hook: InstrumentationHook, number: int) -> None:
    """Let a hook measure for a session, which is not there when it cannot."""
    try:
        HookManager.register(hook, number)
    except BaseException:
        HookManager.session_hooks.pop(number, None)
        sessions.drop(number)
        raise


def _find_hook(hook: str | Hook | None) -> Hook | None:
    if hook is None or isinstance(hook, Hook):
        return hook
    if hook == "triton":
        return LaunchHook()
    raise InvalidArgument(f"Unsupported hook: {hook!r}", hint="hook='triton', or an instance of Hook")


def _chosen(session: int | None) -> list[sessions.AnySession]:
    return sessions.running() if session is None else [sessions.find(session)]


def _check_command_line(session: int | None, verb: str) -> None:
    if flags.command_line and session != 0:
        raise ValueError(f"Only one session can be {verb} when running from the command line.")


def _select_backend() -> str:
    """What `start` measures with by default."""
    return default_profiler()
