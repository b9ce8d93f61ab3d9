"""The backends, which measure a process: one module and one row of the registry each."""

from __future__ import annotations

from bragg.registry import BACKENDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from bragg.record.backends.backend import Backend

__all__ = ["choose_backend", "injection_variables_of", "require_backend"]


def choose_backend(name: str, environ: Mapping[str, str]) -> Backend:
    """The backend of a row, or for `auto` the first one that can be used here.

    Raises:
        UsageError: There is no such row.
    """
    if name != "auto":
        return _load(name)
    return next(backend for backend in map(_load, BACKENDS) if not backend.missing(environ))


def require_backend(name: str, environ: Mapping[str, str]) -> Backend:
    """As `choose_backend`, of a backend that can be used here.

    Raises:
        BackendUnavailable: It cannot.
    """
    from bragg.errors import BackendUnavailable

    backend = choose_backend(name, environ)
    missing = backend.missing(environ)
    if missing:
        raise BackendUnavailable(missing, hint="Run `bragg doctor`, or record the CPU with the backend `cpu`")
    return backend


def injection_variables_of(name: str) -> list[str]:
    """Tool variables of a backend; for `auto` of all, since another machine of the run may choose another one."""
    backends = map(_load, BACKENDS if name == "auto" else [name])
    return list(dict.fromkeys(variable for backend in backends for variable in backend.injection_variables))


def _load(name: str) -> Backend:
    backend: Backend = BACKENDS[name]()
    return backend
