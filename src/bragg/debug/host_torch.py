"""PyTorch where there is no GPU: what is asked for on `cuda` is put on the CPU."""

from __future__ import annotations

from typing import Any

from bragg.debug.host_driver import HostDevice

__all__ = ["use_cpu_for_cuda"]


def use_cpu_for_cuda(torch: Any) -> None:
    """Redirect devices for the rest of the process; does nothing where there is a GPU."""
    from torch.overrides import TorchFunctionMode

    if torch.cuda.is_available():
        return

    def on_cpu(value: Any) -> Any:
        is_cuda = (isinstance(value, str) and value.split(":")[0] == "cuda") or (
            isinstance(value, torch.device) and value.type == "cuda"
        )
        return torch.device("cpu") if is_cuda else value

    class CpuForCuda(TorchFunctionMode):  # type: ignore[misc]
        """Replaces the device in calls of PyTorch's functions."""

        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
            """Call a function with its device replaced."""
            named = {name: on_cpu(value) for name, value in (named or {}).items()}
            if function is torch.Tensor.cuda:
                return arguments[0]
            if function is torch.device:
                return function(*arguments, **named)
            return function(*(on_cpu(argument) for argument in arguments), **named)

    CpuForCuda().__enter__()
    for name in ("synchronize", "current_device", "Event"):
        setattr(torch.cuda, name, getattr(HostDevice, name))
