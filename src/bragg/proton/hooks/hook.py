"""The shape of a hook, and the hooks of the sessions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from bragg.record.hooks.imports import ImportWatch, when_imported
from bragg.record.inside.notes import note

__all__ = ["Hook", "HookManager"]


class Hook:
    """Base of hooks. Their exceptions are shown, and do not reach the program.

    Attributes:
        priority: Hooks of higher priority enter first and exit last.
        is_called: Whether `HookManager` must call it at each launch.
    """

    priority: int = 0
    is_called: ClassVar[bool] = True

    def init_handle(self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str) -> None:
        """A kernel was loaded.

        Args:
            module: The module of the driver.
            function: The function of the driver.
            name: Of the kernel.
            metadata_group: Paths of the files that its compilation left, by their names.
            hash: Of what it was compiled from.
        """
        raise NotImplementedError

    def destroy_handle(
        self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        """A kernel is unloaded. Arguments as for `init_handle`."""

    def enter(self, metadata: Any) -> None:
        """A kernel is about to be launched.

        Args:
            metadata: Of the launch; `get()` computes it.
        """
        raise NotImplementedError

    def exit(self, metadata: Any) -> None:
        """A kernel was launched."""
        raise NotImplementedError

    def activate(self) -> None:
        """The first session that uses it begins to record."""
        raise NotImplementedError

    def deactivate(self) -> None:
        """No session that uses it records any more."""
        raise NotImplementedError


def _hooks_by_session() -> defaultdict[int, dict[Hook, bool]]:
    return defaultdict(lambda: defaultdict(bool))


class HookManager:
    """The hooks that sessions registered.

    Attributes:
        active_hooks: Those that are called, by falling priority.
        session_hooks: By session: its hooks, and whether they are active for it.
    """

    active_hooks: ClassVar[list[Hook]] = []
    session_hooks: ClassVar[defaultdict[int, dict[Hook, bool]]] = _hooks_by_session()

    @staticmethod
    def init_handle(module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str) -> None:
        """Tell all that a kernel was loaded."""
        for hook in HookManager.active_hooks:
            _call(hook, hook.init_handle, module, function, name, metadata_group, hash)

    @staticmethod
    def destroy_handle(module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str) -> None:
        """Tell all that a kernel is unloaded."""
        for hook in reversed(HookManager.active_hooks):
            _call(hook, hook.destroy_handle, module, function, name, metadata_group, hash)

    @staticmethod
    def enter(metadata: Any) -> None:
        """Tell all that a kernel is about to be launched."""
        for hook in HookManager.active_hooks:
            if hook.is_called:
                _call(hook, hook.enter, metadata)

    @staticmethod
    def exit(metadata: Any) -> None:
        """Tell all that a kernel was launched, in reverse order."""
        for hook in reversed(HookManager.active_hooks):
            if hook.is_called:
                _call(hook, hook.exit, metadata)

    @staticmethod
    def register(hook: Hook, session: int) -> None:
        """Add a hook to a session, and activate it."""
        HookManager.session_hooks[session][hook] = True
        _update()

    @staticmethod
    def activate(session: int | None = None) -> None:
        """Activate the hooks of a session, or of all."""
        _switch(session, True)

    @staticmethod
    def deactivate(session: int | None = None) -> None:
        """Deactivate the hooks of a session, or of all, that no other session needs."""
        _switch(session, False)

    @staticmethod
    def unregister(session: int | None = None) -> None:
        """Forget the hooks of a session, or of all."""
        if session is None:
            HookManager.session_hooks.clear()
        else:
            HookManager.session_hooks.pop(session, None)
        _update()


def _switch(session: int | None, active: bool) -> None:
    for number, hooks in HookManager.session_hooks.items():
        if session in (None, number):
            hooks.update(dict.fromkeys(hooks, active))
    _update()


def _update() -> None:
    """Bring the active hooks in line with what the sessions wish."""
    wanted = {hook for hooks in HookManager.session_hooks.values() for hook, active in hooks.items() if active}
    active = HookManager.active_hooks
    for hook in [hook for hook in active if hook not in wanted]:
        active.remove(hook)
        _call(hook, hook.deactivate)
    for hook in wanted.difference(active):
        hook.activate()
        active.append(hook)
    active.sort(key=lambda hook: hook.priority, reverse=True)
    _HEADS.connect(any(hook.is_called for hook in active))


class _Heads:
    """The functions of `HookManager` in the hooks of Triton, which may be imported later."""

    _FUNCTIONS: ClassVar[dict[str, Callable[..., None]]] = {
        "kernel_load_end_hook": HookManager.init_handle,
        "kernel_unload_hook": HookManager.destroy_handle,
        "launch_enter_hook": HookManager.enter,
        "launch_exit_hook": HookManager.exit,
    }

    def __init__(self) -> None:
        self._watch: ImportWatch | None = None

    def connect(self, wanted: bool) -> None:
        """Be called by Triton, or not."""
        if wanted and self._watch is None:
            self._watch = when_imported("triton.knobs", self._connect)
        elif not wanted and self._watch is not None:
            self._watch.remove()
            self._watch = None

    def _connect(self, knobs: Any) -> Callable[[], None]:
        undo = [
            _add(knobs.runtime, name, function)
            for name, function in self._FUNCTIONS.items()
            if hasattr(knobs.runtime, name)
        ]

        def disconnect() -> None:
            for remove in undo:
                remove()

        return disconnect


_HEADS = _Heads()


def _add(runtime: Any, name: str, function: Callable[..., None]) -> Callable[[], None]:
    """Add a function to a hook of Triton; what is returned removes it."""
    others = getattr(runtime, name)
    if hasattr(others, "add"):
        others.add(function)
        return lambda: others.remove(function)

    # Triton 3.4: one function, or none.
    def both(metadata: Any) -> None:
        function(metadata)
        others(metadata)

    setattr(runtime, name, function if others is None else both)
    return lambda: setattr(runtime, name, others)


_failed: set[tuple[Hook, str]] = set()


def _call(hook: Hook, method: Callable[..., None], *arguments: Any) -> None:
    """Call a hook of the program; the first exception of each of its methods is shown."""
    try:
        method(*arguments)
    except Exception as error:  # noqa: BLE001
        if (hook, method.__name__) not in _failed:
            _failed.add((hook, method.__name__))
            note(f"hook {type(hook).__name__}.{method.__name__} failed: {type(error).__name__}: {error}")
