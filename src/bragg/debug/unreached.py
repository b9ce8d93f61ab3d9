"""Messages for a checked program that launched no kernel."""

from __future__ import annotations

import gc

from bragg.debug.flow.jitted import is_jitted, is_of, python_function

_SHOWN = 5


def unreached(exit_code: int = 0) -> str:
    """A sentence for a program whose kernels were not executed: nothing was checked, and which kernels there are.

    Args:
        exit_code: Of the program.
    """
    if exit_code:
        return f"nothing was checked: the program failed with exit code {exit_code} before it launched a Triton kernel"
    functions = {python_function(one) for one in gc.get_objects() if is_jitted(one)}
    own = sorted(
        f"{one.__name__} ({one.__code__.co_filename}:{one.__code__.co_firstlineno})"
        for one in functions
        if not is_of(one, "triton", "torch")
    )
    if not own:
        return "nothing was checked: the program has no Triton kernels, or runs them where bragg cannot see them"
    more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
    return f"nothing was checked: the program launched none of its Triton functions: {', '.join(own[:_SHOWN])}{more}"
