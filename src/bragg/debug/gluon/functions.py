"""The functions of Gluon: layouts do not matter, and what runs beside the kernel on a GPU is done at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bragg.debug import language
from bragg.debug.faults import Unsupported
from bragg.debug.gluon import barriers
from bragg.debug.gluon.shared_memory import SharedMemory, allocate, chosen_rows
from bragg.debug.gluon.tracker import AsyncWork
from bragg.debug.memory import load_store
from bragg.debug.numbers import arithmetic
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.matmul import dot
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.reductions import histogram
from bragg.debug.numbers.scaled import dot_scaled, fp4_to_fp
from bragg.debug.state import each_tracker, machine
from bragg.debug.values import IN_FLIGHT, Tensor


def _nothing(*_arguments: Any, **_named: Any) -> None:
    """What orders, fences and waits has no effect where everything is complete at once."""


def _loaded(value: Any) -> Tensor:
    return value.taken() if isinstance(value, SharedMemory) else as_tensor(value)


def _start(
    kind: str,
    pred: Any = True,
    *,
    writes: SharedMemory | None = None,
    reads: tuple[Any, ...] = (),
    barrier: SharedMemory | None = None,
) -> None:
    for tracker in each_tracker():
        tracker.started(AsyncWork(kind, chosen_rows(pred), writes, reads, barrier))


def _warpgroup_product(
    a: Any, b: Any, acc: Any, *, use_acc: Any = True, precision: str | None = None, is_async: bool = False, **_: Any
) -> Tensor:
    """A product whose accumulator may be used, and its operands overwritten, after a wait alone."""
    before = acc.untainted(IN_FLIGHT) if isinstance(acc, Tensor) else acc
    _start("product", reads=(a, b))
    result = _product(a, b, before, use_acc=use_acc, precision=precision)
    if not each_tracker():
        return result
    if not is_async:
        _wait_for_products(0)
        return result
    return result.tainted(np.ones((1,) * result.data.ndim, bool), IN_FLIGHT)


def _wait_for_products(num_outstanding: int = 0, deps: Any = None) -> Any:
    for tracker in each_tracker():
        tracker.waited_for("products", num_outstanding)
    if deps is None:
        return None
    over = tuple(one.untainted(IN_FLIGHT) if isinstance(one, Tensor) else one for one in deps)
    return over[0] if len(over) == 1 else over


def _wait_for(what: str, left: Any) -> None:
    for tracker in each_tracker():
        tracker.waited_for(what, int(left))


def _fence(cluster: bool = False) -> None:
    del cluster
    for tracker in each_tracker():
        tracker.fenced()


def _commit_group() -> None:
    for tracker in each_tracker():
        tracker.committed()


def _commit_products(barrier: SharedMemory, pred: Any = True, descs: Any = ()) -> None:
    del descs
    for tracker in each_tracker():
        tracker.committed_products(barrier)
    barriers.arrive(barrier, pred=pred)


def _product(a: Any, b: Any, acc: Any = None, *, use_acc: Any = True, precision: str | None = None, **_: Any) -> Tensor:
    """`a @ b + acc`, without `acc` in the programs where it is not to be used."""
    x, y = _loaded(a), _loaded(b)
    if acc is None:
        return dot(x, y, input_precision=precision)
    total = as_tensor(acc)
    used = arithmetic.select(use_acc, total, 0.0 if total.dtype.is_floating() else 0)
    return dot(x, y, cast(used, total.dtype), input_precision=precision, out_dtype=total.dtype)


def _arrive_all(mbarriers: Any, preds: Any) -> None:
    for place, barrier in enumerate(mbarriers or ()):
        for tracker in each_tracker():
            tracker.committed_products(barrier)
        barriers.arrive(barrier, pred=preds[place] if preds is not None else True)


def _accumulated(acc: SharedMemory, use_acc: Any) -> Tensor:
    """What is in an accumulator, which need not be written yet where it is not used."""
    return acc.taken() if cast(as_tensor(use_acc), DTYPES["int1"]).data.all() else acc.held()


def _tensor_core(
    a: Any,
    b: Any,
    acc: SharedMemory,
    *,
    use_acc: Any = True,
    pred: Any = True,
    mbarriers: Any = None,
    mbarrier_preds: Any = None,
    **_options: Any,
) -> None:
    _start("tensor product", pred, writes=acc, reads=(a, b))
    acc.put(_product(a, b, _accumulated(acc, use_acc), use_acc=use_acc), pred)
    _arrive_all(mbarriers, mbarrier_preds)


def _scaled_tensor_core(
    a: Any,
    b: Any,
    acc: SharedMemory,
    a_scale: Any,
    b_scale: Any,
    a_type: str,
    b_type: str,
    *,
    use_acc: Any = True,
    pred: Any = True,
    mbarriers: Any = None,
    mbarrier_preds: Any = None,
    **_options: Any,
) -> None:
    _start("tensor product", pred, writes=acc, reads=(a, b, a_scale, b_scale))
    total = arithmetic.select(use_acc, _accumulated(acc, use_acc), 0.0)
    product = dot_scaled(_loaded(a), _loaded(a_scale), a_type, _loaded(b), _loaded(b_scale), b_type, total)
    acc.put(product, pred)
    _arrive_all(mbarriers, mbarrier_preds)


def _copied(source: SharedMemory, target: SharedMemory) -> None:
    if source.shape != target.shape:
        raise Unsupported("tcgen05_copy between different shapes is not supported", hint="Store the scales by blocks")
    _start("tensor product", writes=target, reads=(source,))
    target.put(source.taken())


def _copy_from_pointers(smem: SharedMemory, pointer: Any, mask: Any = None, **_hints: Any) -> None:
    """Lanes that the mask leaves out are zero."""
    _start("copy", writes=smem)
    smem.put(load_store.load(pointer, mask, None if mask is None else 0))


def _copy_from_tensor(
    tensor_desc: Any, coord: Any, barrier: SharedMemory, result: SharedMemory, pred: Any = True, **_options: Any
) -> None:
    _start("load", pred, writes=result, barrier=barrier)
    result.put(language.FUNCTIONS["reshape"](tensor_desc.load(coord), result.shape), pred)
    barriers.complete_bytes(barrier, result.nbytes_per_cta, pred)


def _gather_from_tensor(
    tensor_desc: Any,
    x_offsets: Any,
    y_offset: Any,
    barrier: SharedMemory,
    result: SharedMemory,
    pred: Any = True,
    **_options: Any,
) -> None:
    _start("load", pred, writes=result, barrier=barrier)
    result.put(tensor_desc.gather(x_offsets, y_offset), pred)
    barriers.complete_bytes(barrier, result.nbytes_per_cta, pred)


def _sent(src: SharedMemory) -> Tensor:
    """What a store by TMA takes out of shared memory."""
    _start("store", reads=(src,))
    return src.taken()


def _reduce_tensor(operation: str) -> Callable[..., None]:
    return lambda tensor_desc, coord, src: tensor_desc.reduce(operation, coord, _sent(src))


def _store_and_arrive(dst: SharedMemory, value: Any, mbarrier: SharedMemory) -> None:
    dst.store(value)
    barriers.complete_bytes(mbarrier, dst.nbytes_per_cta)


def _allocate_barriers(batch: int | None = None, two_ctas: bool = False) -> SharedMemory:
    del two_ctas
    return allocate(DTYPES["int64"], (1,) if batch is None else (batch, 1))


def _arrive_when_copied(mbarrier: SharedMemory, increment_count: bool = True) -> None:
    """The copies are complete; the arrivals are ones that the count does not know of, so nothing is left to do.

    Raises:
        Unsupported: Each thread is to arrive.
    """
    for tracker in each_tracker():
        tracker.committed(mbarrier)
    if not increment_count:
        raise Unsupported(
            "mbarrier_arrive(increment_count=False) is not supported", hint="Arrive once: mbarrier.arrive"
        )


def _fused(lhs: Any, rhs: Any, acc: Any, dtype: Any = None) -> Tensor:
    result = arithmetic.fused(lhs, rhs, acc)
    return result if dtype is None else cast(result, dtype)


def _two(name: str) -> Callable[..., Any]:
    def apply(lhs: Any, rhs: Any, dtype: Any = None) -> Any:
        result = language.FUNCTIONS[name](lhs, rhs)
        return result if dtype is None else cast(result, dtype)

    return apply


_TMA: dict[str, Any] = {
    "async_load": _copy_from_tensor,
    "async_copy_global_to_shared": _copy_from_tensor,
    "async_store": lambda tensor_desc, coord, src, **_: tensor_desc.store(coord, _sent(src)),
    "async_copy_shared_to_global": lambda tensor_desc, coord, src, **_: tensor_desc.store(coord, _sent(src)),
    "async_gather": _gather_from_tensor,
    "async_scatter": lambda tensor_desc, x_offsets, y_offset, src, **_: tensor_desc.scatter(
        _sent(src), x_offsets, y_offset
    ),
    **{f"async_atomic_{name}": _reduce_tensor(name) for name in ("add", "min", "max", "and", "or", "xor")},
    "store_wait": lambda pendings: _wait_for("stores", pendings),
    "make_tensor_descriptor": lambda base, shape, strides, block_shape, layout=None, **named: language.FUNCTIONS[
        "make_tensor_descriptor"
    ](base, shape, strides, block_shape, **named),
}

_MBARRIER: dict[str, Any] = {
    "allocate_mbarrier": _allocate_barriers,
    "init": barriers.init,
    "invalidate": _nothing,
    "wait": barriers.wait,
    "arrive": barriers.arrive,
    "expect": barriers.expect,
    "fence_init_release_cluster": _nothing,
}

_ASYNC_COPY: dict[str, Any] = {
    "async_load": _copy_from_pointers,
    "async_copy_global_to_shared": _copy_from_pointers,
    "mbarrier_arrive": _arrive_when_copied,
    "commit_group": _commit_group,
    "wait_group": lambda num_outstanding=0: _wait_for("groups", num_outstanding),
}

_MMA: dict[str, Any] = {
    "mma_v2": lambda a, b, acc, input_precision=None: _product(a, b, acc, precision=input_precision),
    "fence_async_shared": _fence,
    "async_store": _store_and_arrive,
    "warpgroup_mma": _warpgroup_product,
    "warpgroup_mma_init": lambda value: value,
    "warpgroup_mma_wait": _wait_for_products,
    "allocate_tensor_memory": partial(allocate, is_tensor_memory=True),
    "get_tmem_reg_layout": _nothing,
    "tcgen05_copy": _copied,
    "tcgen05_mma": _tensor_core,
    "tcgen05_mma_scaled": _scaled_tensor_core,
    "tcgen05_commit": _commit_products,
    "tcgen05_mma_barrier_count": lambda smems, multicast, two_ctas: 1,
    "fma2": _fused,
    **{f"{name}2": _two(name) for name in ("add", "sub", "mul")},
    "min2": _two("minimum"),
    "max2": _two("maximum"),
}

_CORE: dict[str, Any] = {
    "arange": lambda start, end, layout=None: language.arange(start, end),
    "full": lambda shape, value, dtype, layout=None: language.full(shape, value, dtype),
    "convert_layout": lambda value, layout, assert_trivial=False: value,
    "set_auto_layout": lambda value, layout: value,
    "histogram": lambda input, num_bins, mask=None, layout=None: histogram(input, num_bins, mask),
    "allocate_shared_memory": allocate,
    "warp_specialize": barriers.warp_specialize,
    "num_warps": lambda: machine().num_warps,
    "num_ctas": lambda: 1,
    "barrier": _nothing,
    "thread_barrier": _nothing,
    "dot_fma": lambda a, b, acc: dot(a, b, acc, input_precision="ieee"),
    "fp4_to_fp": fp4_to_fp,
}

# Classes that annotations and options name.
TYPES: dict[str, Any] = {
    "void": None,
    "base_value": object,
    "base_type": object,
    "tuple_type": tuple,
    "CachePolicy": _nothing,
    "shared_memory_descriptor": SharedMemory,
}

# By the last part of the name of the module that defines a function.
_BY_MODULE = {
    "tma": _TMA,
    "mbarrier": _MBARRIER,
    "async_copy": _ASYNC_COPY,
    "cluster": {"barrier": _nothing, "arrive": _nothing, "wait": _nothing},
    "ampere": _MMA,
    "hopper": _MMA,
    "blackwell": _MMA,
    "rubin": _MMA,
}


def gluon_function(module: str, name: str) -> Any:
    """The engine's function for one of Gluon.

    Args:
        module: The full name of the module that defines it.
        name: Of the function.

    Raises:
        Unsupported: The engine does not have it.
    """
    parts = module.split(".")
    own = _BY_MODULE.get(parts[-1], {} if "nvidia" in parts or "amd" in parts else {**language.FUNCTIONS, **_CORE})
    if name not in own or "amd" in parts:
        raise Unsupported(f"{module}.{name} is not supported", hint="See docs/guides/debugging.md for what is")
    return own[name]
