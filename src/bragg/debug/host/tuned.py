"""Launches of kernels under `@triton.autotune`: which configuration they get, and which hooks are called."""

from __future__ import annotations

import sys
import weakref
from typing import Any

# What was put into caches of autotuners, which Triton must not find there: it has measured nothing.
_CHOSEN: list[tuple[Any, tuple[Any, ...]]] = []
# For each autotuner, the key of its last launch, and by key the configurations that are left to choose from.
_LAST: weakref.WeakKeyDictionary[Any, tuple[Any, ...]] = weakref.WeakKeyDictionary()
_LEFT: weakref.WeakKeyDictionary[Any, dict[tuple[Any, ...], list[Any]]] = weakref.WeakKeyDictionary()


def forget_tuning() -> None:
    """Let Triton measure itself from now on."""
    for tuner, key in _CHOSEN:
        tuner.cache.pop(key, None)
    _CHOSEN.clear()
    _LEFT.clear()


def tuned(tuner: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """What the chosen configuration adds to the arguments, after its hook was called."""
    tuner.nargs = dict(zip(tuner.arg_names, arguments, strict=False))
    config = tuner.best_config = _configuration(tuner, named)
    chosen: dict[str, Any] = config.all_kwargs()
    if config.pre_hook is not None:
        config.pre_hook({**tuner.nargs, **named, **chosen})
    return chosen


def refused(tuner: Any) -> bool:
    """Take another configuration from now on: for the one of the last launch a `tl.static_assert` does not hold.

    Returns:
        False: There is no other, or no autotuner.
    """
    if tuner is None:
        return False
    key = _LAST.get(tuner, ())
    left = _LEFT.get(tuner, {}).get(key, [])
    if len(left) < 2:
        return False
    del left[0]
    tuner.cache.pop(key, None)
    return True


def is_measured() -> bool:
    """An autotuner measures a configuration: it leaves out those that do not compile."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "_bench":
            kinds = type(frame.f_locals.get("self")).__mro__
            return any(kind.__name__ == "Autotuner" for kind in kinds)
    return False


def _configuration(tuner: Any, named: dict[str, Any]) -> Any:
    """The first that the program leaves to be measured, and that compiles.

    Results must not depend on which one is chosen. As in Triton, it is chosen once for each key, and tensors are reset
    then alone. Hooks are called as around one measurement, in which the kernel is not executed: the checker of tuning
    executes it twice.
    """
    if len(tuner.configs) == 1:
        return tuner.configs[0]
    key = _LAST[tuner] = _tuning_key(tuner, {**tuner.nargs, **named})
    if key not in tuner.cache:
        left = _LEFT.setdefault(tuner, {})
        if key not in left:
            left[key] = list(tuner.prune_configs(named) or tuner.configs)
        config = left[key][0]
        everything = {**tuner.nargs, **named, **config.all_kwargs()}
        if config.pre_hook is not None:
            config.pre_hook(everything)
        tuner.pre_hook(everything)
        tuner.post_hook(everything, exception=None)
        tuner.pre_hook(everything, reset_only=True)
        tuner.cache[key] = config
        _CHOSEN.append((tuner, key))
    return tuner.cache[key]


def _tuning_key(tuner: Any, given: dict[str, Any]) -> tuple[Any, ...]:
    """Triton's: values of the parameters that `key` names, and types of all tensors."""
    known = {name: value for name, value in given.items() if name in tuner.arg_names}
    types = [str(value.dtype) for value in known.values() if hasattr(value, "dtype")]
    return (*(known[name] for name in tuner.keys if name in known), *types)
