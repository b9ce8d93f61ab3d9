"""Streams and graphs of `torch.cuda` where there is no GPU: what a graph captures is executed when it is replayed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from bragg.errors import UsageError

Step = Callable[[], Any]


class _Capturing(threading.local):
    graph: HostGraph | None = None


_NOW = _Capturing()


def captured(step: Step) -> bool:
    """Keep a launch for the replays of the graph that this thread captures; False: it captures none."""
    if _NOW.graph is None:
        return False
    _NOW.graph.steps.append(step)
    return True


class HostStream:
    """A stream: what it is given has ended when the call returns."""

    cuda_stream = 0

    def __init__(self, device: Any = None, priority: int = 0, **_options: Any) -> None:
        self.device, self.priority = device, priority

    def wait_stream(self, stream: Any) -> None:
        """It has ended."""

    def wait_event(self, event: Any) -> None:
        """It has happened."""

    def record_event(self, event: Any = None) -> Any:
        """It is now."""
        from bragg.debug.host.driver import HostEvent

        event = event or HostEvent()
        event.record()
        return event

    def synchronize(self) -> None:
        """It has ended."""

    def query(self) -> bool:
        """It has ended."""
        return True

    def __enter__(self) -> HostStream:
        return self

    def __exit__(self, *_error: object) -> None:
        """There is no other stream to go back to."""


class HostGraph:
    """`torch.cuda.CUDAGraph`: operators and launches in the order in which they were captured.

    As on a GPU, nothing that changes memory happens while it is captured.
    """

    def __init__(self, *_options: Any, **_named: Any) -> None:
        self.steps: list[Step] = []
        self._mode: Any = None

    def capture_begin(self, *_options: Any, **_named: Any) -> None:
        """Capture what this thread does from now on."""
        if _NOW.graph is not None:
            raise UsageError("a graph is captured inside of the capture of another one")
        self.steps.clear()
        self._mode = _capture_mode(self.steps)
        self._mode.__enter__()
        _NOW.graph = self

    def capture_end(self) -> None:
        """The graph is complete."""
        _NOW.graph = None
        self._mode.__exit__(None, None, None)

    def replay(self) -> None:
        """Execute what was captured."""
        for step in self.steps:
            step()

    def reset(self) -> None:
        """Forget it."""
        self.steps.clear()

    def pool(self) -> tuple[int, int]:
        """Memory is the host's."""
        return 0, 0

    def register_generator_state(self, generator: Any) -> None:
        """Generators are the host's."""

    def enable_debug_mode(self) -> None:
        """There is nothing more to tell."""


def _capture_mode(steps: list[Step]) -> Any:
    """PyTorch's operators become steps.

    Those that only compute are executed at once too, for shapes and memory of their results. A replay computes them
    anew and writes into that memory.
    """
    from torch import Tensor
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten

    class Capture(TorchDispatchMode):  # type: ignore[misc]
        """Keeps operators."""

        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
            """Keep one."""
            named = named or {}
            schema = function._schema
            if function.__name__.startswith("_local_scalar_dense"):
                _refuse_value()
            if schema.is_mutable:
                steps.append(lambda: function(*arguments, **named))
                return _mutated(schema, arguments, named)
            result = function(*arguments, **named)
            if not any(one.alias_info is not None for one in schema.returns):
                results = [one for one in tree_flatten(result)[0] if isinstance(one, Tensor)]
                steps.append(lambda: _compute_again(function, arguments, named, results))
            return result

    def _compute_again(function: Any, arguments: Any, named: Any, results: list[Any]) -> None:
        new = [one for one in tree_flatten(function(*arguments, **named))[0] if isinstance(one, Tensor)]
        for old, one in zip(results, new, strict=True):
            old.copy_(one)

    return Capture()


def _mutated(schema: Any, arguments: Any, named: Any) -> Any:
    """What an operator returns that changes its arguments: these."""
    given = {**{one.name: value for one, value in zip(schema.arguments, arguments, strict=False)}, **named}
    written = (one.name for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write)
    changed = [given.get(name) for name in written]
    if not schema.returns:
        return None
    return changed[0] if len(schema.returns) == 1 else tuple(changed)


def _refuse_value() -> NoReturn:
    raise RuntimeError("a value of a tensor is asked for while a CUDA graph is captured: CUDA does not permit that")


class _Graph:
    """`with torch.cuda.graph(g):`."""

    def __init__(self, cuda_graph: HostGraph, *_options: Any, **_named: Any) -> None:
        self._graph = cuda_graph

    def __enter__(self) -> None:
        self._graph.capture_begin()

    def __exit__(self, *_error: object) -> None:
        self._graph.capture_end()


@contextmanager
def _on_stream(stream: Any) -> Iterator[None]:
    yield


def _no_graphed_callables(*_arguments: Any, **_named: Any) -> NoReturn:
    raise UsageError("torch.cuda.make_graphed_callables needs a GPU", hint="Call the functions as they are")


def _philox_generator(torch: Any) -> Any:
    """A generator whose state is that of a GPU's: kernels that draw numbers themselves take seed and offset from it."""

    class PhiloxGenerator(torch._C.Generator):  # type: ignore[misc]
        """State: int64 [2], as bytes."""

        _offset = 0

        def get_state(self) -> Any:
            return torch.tensor([self.initial_seed(), self._offset], dtype=torch.int64).view(torch.uint8)

        def set_state(self, state: Any) -> Any:
            seed, offset = state.view(torch.int64).tolist()
            if seed != self.initial_seed():
                self.manual_seed(seed)
            return self.set_offset(offset)

        def manual_seed(self, seed: int) -> Any:
            super().manual_seed(seed)
            return self.set_offset(0)

        def get_offset(self) -> int:
            return self._offset

        def set_offset(self, offset: int) -> Any:
            self._offset = offset
            return self

    return PhiloxGenerator().manual_seed(torch.initial_seed())


def host_streams(torch: Any) -> dict[str, Any]:
    """Names of `torch.cuda` that deal with streams, graphs and the state of devices."""
    stream = HostStream()
    generator = _philox_generator(torch)

    def seed(number: int) -> None:
        torch.default_generator.manual_seed(number)  # Tensors that are asked for on `cuda` get their numbers here.
        generator.manual_seed(number)

    return {
        "Stream": HostStream,
        "ExternalStream": HostStream,
        "stream": _on_stream,
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "set_stream": lambda stream: None,
        "CUDAGraph": HostGraph,
        "graph": _Graph,
        "graph_pool_handle": lambda: (0, 0),
        "is_current_stream_capturing": lambda: _NOW.graph is not None,
        "make_graphed_callables": _no_graphed_callables,
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
        "initial_seed": torch.initial_seed,
        "default_generators": (generator,),
        "manual_seed": seed,
        "manual_seed_all": seed,
        "empty_cache": lambda: None,
    }
