"""Scopes and events inside of Triton kernels, which compile to nothing but the value that they are given."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class kernel_scope:  # noqa: N801 - used as `scope` is
    """Names some lines of a Triton or Gluon kernel: `with bragg.kernel_scope("load q"):`.

    The compiled kernel is the same with and without it, unless it has a value. `bragg run --instrument` times these
    lines.

    Args:
        name: A literal: it is read from the source.
        value: A scalar that is stored beside the times, an integer or a floating-point number of at most 32 bits:
            `bragg.kernel_scope("load q", step)`. Triton has evaluated it since 3.5; elsewhere than on NVIDIA GPUs it
            is not stored.
    """

    __triton_builtin__ = True

    def __init__(self, name: str, value: object = None, _semantic: Any = None) -> None:
        if value is not None and _semantic is not None and _semantic.builder.options.backend_name == "cuda":
            _keep(value, _semantic)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class _Mark:
    """One end of an event: it compiles to nothing but its value."""

    __triton_builtin__ = True

    def __init__(self, name: str, value: object = None, _semantic: Any = None) -> None:
        if value is not None and _semantic is not None and _semantic.builder.options.backend_name == "cuda":
            _keep(value, _semantic)


class kernel_event_begin(_Mark):  # noqa: N801 - used as `kernel_scope` is
    """Begins an event in a Triton or Gluon kernel: `bragg.kernel_event_begin("copy", step)`.

    An event ends at another place: in a later turn of the loop, or in another warp of the block. Its begins and ends
    are matched by name and value. Without a value the event begins before the next line with an effect, and is ended
    by the first end that is left. `bragg run --instrument` measures it; otherwise the kernel is the same with and
    without it, unless it has a value.

    Args:
        name: A literal: it is read from the source.
        value: As that of a `kernel_scope`: the turn of a loop, or the number of a stage.
    """


class kernel_event_end(_Mark):  # noqa: N801 - used as `kernel_scope` is
    """Ends an event in a Triton or Gluon kernel: `bragg.kernel_event_end("copy", step)`.

    Without a value the event ends behind the last line with an effect before this one.

    Args:
        name: That of its `kernel_event_begin`.
        value: What that was given.
    """


def _keep(value: object, semantic: Any) -> None:
    """Have a value in a register, and mark it for `bragg.code.instrument.blocks`.

    Raises:
        TypeError: It is no scalar of at most 32 bits.
    """
    from triton.language import core

    from bragg.code.instrument.blocks import VALUE_MARK

    given = semantic.to_tensor(value)
    if given.type.is_block() or given.dtype.is_ptr() or given.dtype.primitive_bitwidth > 32:
        raise TypeError(f"the value of a kernel_scope is a scalar of at most 32 bits, not {given.type}")
    is_float = given.dtype.is_floating()
    word = semantic.cast(given, core.float32 if is_float else core.int32)
    kind = "f32" if is_float else "i32"
    # On Blackwell, Triton's pipeliner up to 3.8 has no place for assembly in loops, but it has for conditions. LLVM
    # knows that this one is always true, so nothing of it is left.
    block = core.program_id(0, _semantic=semantic)
    always = semantic.greater_equal(block, semantic.to_tensor(0))
    behind = semantic.builder.get_insertion_point()
    condition = semantic.builder.create_if_op([], always.handle, False)
    semantic.builder.set_insertion_point_to_start(condition.get_then_block())
    core.inline_asm_elementwise(
        f"mov.b32 $0, $1; // {VALUE_MARK} {kind}",
        "=r,f" if is_float else "=r,r",
        [word],
        dtype=core.int32,
        is_pure=False,
        pack=1,
        _semantic=semantic,
    )
    semantic.builder.restore_insertion_point(behind)
