"""PyTorch where there is no GPU: what is asked for on `cuda` is put on the CPU, and says that it is on `cuda`."""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from types import FrameType
from typing import Any

from bragg.debug.host.driver import HostDevice
from bragg.debug.host.pytorch.host_tensors import HOST_TENSORS
from bragg.debug.host.streams import host_streams

_FOR_ANY_DEVICE = ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "")
# What makes a tensor of no other one: on the CPU, unless a device is named or chosen for a block of code.
_FACTORIES = [
    "arange",
    "empty",
    "eye",
    "from_numpy",
    "full",
    "linspace",
    "ones",
    "rand",
    "randint",
    "randn",
    "randperm",
    "zeros",
]
_KNOWING = frozenset({"bragg", "functorch", "torch", "triton"})


def use_cpu_for_cuda(torch: Any) -> None:
    """Redirect devices for the rest of the process; does nothing where there is a GPU, or was redirected before."""
    if torch.cuda.is_available():
        return
    on_cpu = partial(_on_cpu, torch.device)
    mode = _mode(torch, on_cpu)
    torch.Generator = _generators_of_host(torch.Generator, on_cpu)
    # PyTorch applies a default device after all modes.
    set_default_device = torch.set_default_device
    chosen = getattr(sys.modules.get("torch.utils._device"), "CURRENT_DEVICE", None)  # There once one was chosen.
    if chosen is not None and chosen.type == "cuda":
        set_default_device("cpu")
    torch.set_default_device = lambda device: set_default_device(on_cpu(device))
    mode().__enter__()
    _stay_in_backward(torch.autograd, mode)
    _stay_in_threads(mode)
    _take_operators_of_cuda(torch.library.Library, mode)
    for name in (name for name in vars(HostDevice) if not name.startswith("_")):
        setattr(torch.cuda, name, getattr(HostDevice, name))
    for name, value in host_streams(torch).items():
        setattr(torch.cuda, name, value)


def _on_cpu(device_class: type, value: Any) -> Any:
    """The device instead of another one; what is none stays as it is."""
    if isinstance(value, device_class):
        return device_class("cpu") if value.type == "cuda" else value  # type: ignore[attr-defined]
    return "cpu" if isinstance(value, str) and value.split(":")[0] == "cuda" else value


def _mode(torch: Any, on_cpu: Callable[[Any], Any]) -> Callable[[], AbstractContextManager[Any]]:
    """The mode of PyTorch that replaces devices."""
    from torch.overrides import TorchFunctionMode

    devices = (str, torch.device)
    is_cuda, device, get_device = torch.Tensor.is_cuda.__get__, torch.Tensor.device.__get__, torch.Tensor.get_device
    gpu, plain = torch.device("cuda", 0), (torch.Tensor, torch.nn.Parameter)
    stays = (torch.Tensor.cuda, torch.Tensor.pin_memory)
    # Looked up once a call: there are as many calls as PyTorch has functions.
    answered = frozenset({is_cuda, device, get_device, *stays})
    places, is_compiling = _Places(torch), torch.compiler.is_compiling

    class CpuForCuda(TorchFunctionMode):  # type: ignore[misc]
        """Replaces the device in calls of PyTorch's functions."""

        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
            """Call a function with its device replaced."""
            given, given_named = arguments, named
            if function in answered:
                if function == is_cuda:
                    return True
                if function in stays:
                    return arguments[0] if is_compiling() else places.on_gpu(arguments[0])
                if type(arguments[0]) in plain and _is_authors(sys._getframe(1)):
                    return gpu if function == device else 0
            if named:
                # Memory is pinned for a GPU.
                named = {
                    name: on_cpu(value) if isinstance(value, devices) else value
                    for name, value in named.items()
                    if name != "pin_memory"
                }
            if function is not torch.device:
                for argument in arguments:
                    if isinstance(argument, devices):
                        arguments = tuple(map(on_cpu, arguments))
                        break
            result = function(*arguments, **(named or {}))
            if is_compiling():  # What PyTorch's compiler traces stays as it was.
                return result
            return places.noted(function, given, given_named, result)

    return CpuForCuda


class _Places:
    """Notes which tensors the program wants on the CPU, by the devices that it names."""

    def __init__(self, torch: Any) -> None:
        self._devices, self._tensor = (str, torch.device), torch.Tensor
        self._factories = frozenset(getattr(torch, name) for name in _FACTORIES)
        self._to_cpu, self._to_others = torch.Tensor.cpu, frozenset({torch.Tensor.to, torch.Tensor.type_as})

    def on_gpu(self, tensor: Any) -> Any:
        """A tensor that was moved to a GPU, or pinned for one."""
        return HOST_TENSORS.placed(tensor, tensor, ("cuda",), is_authors=True)

    def noted(self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any] | None, result: Any) -> Any:
        """What a function gives, which may be a tensor on another device than its argument."""
        if type(result) is not self._tensor:
            return result
        kinds = [self._kind(one) for one in (*arguments, *(named or {}).values()) if isinstance(one, self._devices)]
        if function == self._to_cpu:
            kinds = ["cpu"]
        elif function in self._to_others and len(arguments) > 1 and isinstance(arguments[1], self._tensor):
            kinds = ["cpu" if arguments[1] in HOST_TENSORS else "cuda"]
        elif function in self._factories and not any(kinds) and not (named or {}).get("pin_memory"):
            kinds = ["cpu"]
        if not any(kinds):
            return result
        source = arguments[0] if arguments else None
        return HOST_TENSORS.placed(result, source, kinds, is_authors=_is_authors(sys._getframe(2)))

    def _kind(self, device: Any) -> str:
        kind = device.split(":")[0] if isinstance(device, str) else str(device.type)
        return kind if kind in ("cpu", "cuda") else ""


def _generators_of_host(own: Any, on_cpu: Callable[[Any], Any]) -> Any:
    """The class of PyTorch's generators, for random numbers of the host; modes do not see generators being made."""

    class Generators(type(own)):  # type: ignore[misc]
        """PyTorch's own generators are some, too."""

        def __instancecheck__(cls, value: Any) -> bool:
            """One is."""
            return isinstance(value, own)

    class HostGenerator(own, metaclass=Generators):  # type: ignore[misc]
        """Random numbers of the host."""

        def __new__(cls, device: Any = "cpu") -> Any:
            """Make one."""
            return super().__new__(cls, on_cpu(device))

    return HostGenerator


def _is_authors(frame: FrameType) -> bool:
    """It is the program that asks where a tensor is: PyTorch, Triton and the engine must know where it really is."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] not in _KNOWING


def compile_with_triton(inductor: Any) -> None:
    """PyTorch's compiler writes Triton kernels for the CPU too, in this process.

    Args:
        inductor: The module `torch._inductor.config`.
    """
    inductor.cpu_backend = "triton"
    inductor.compile_threads = 1
    warnings.filterwarnings("ignore", "Could not find an active CPU backend")


def _take_operators_of_cuda(library: Any, mode: Callable[[], AbstractContextManager[Any]]) -> None:
    """What an operator of the program does on `cuda` or anywhere, it does here, and not what it does on the CPU."""
    register = library.impl
    known = set()

    def register_redirected(self: Any, name: Any, function: Any, dispatch_key: str = "", **options: Any) -> Any:
        key = dispatch_key or self.dispatch_key
        if key not in ("CPU", "CUDA", *_FOR_ANY_DEVICE) or self.ns == "aten" or _is_of_pytorch(function):
            return register(self, name, function, dispatch_key, **options)
        operator = self.ns, str(name).rpartition("::")[2]
        if key == "CPU" and operator in known:
            return None
        if key != "CPU":
            known.add(operator)

        @functools.wraps(function)
        def redirected(*arguments: Any, **named: Any) -> Any:
            with mode(), HOST_TENSORS.taken():
                return function(*arguments, **named)

        return register(self, name, redirected, key.replace("CUDA", "CPU"), **options)

    library.impl = register_redirected


def _is_of_pytorch(function: Any) -> bool:
    """PyTorch's own, and not what it puts around a function of the program."""
    module = str(getattr(function, "__module__", ""))
    return module.partition(".")[0] == "torch" and module != "torch._library.custom_ops"


def _stay_in_threads(mode: Callable[[], AbstractContextManager[Any]]) -> None:
    """A mode is one thread's: new threads enter it when they start."""
    start: Any = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def start_redirected(thread: threading.Thread) -> None:
        with mode():
            start(thread)

    threading.Thread._bootstrap_inner = start_redirected  # type: ignore[attr-defined]


def _stay_in_backward(autograd: Any, mode: Callable[[], AbstractContextManager[Any]]) -> None:
    """PyTorch leaves a mode inside of the functions that it sees; `backward` calls functions of the program."""
    run = autograd.graph._engine_run_backward

    def run_redirected(*arguments: Any, **named: Any) -> Any:
        with mode():
            return run(*arguments, **named)

    autograd._engine_run_backward = autograd.graph._engine_run_backward = run_redirected
