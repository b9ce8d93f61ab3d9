"""Long filters of single channels, which Fourier transforms apply with less work."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import argument, calls_at, is_layer, makers_of_called
from bragg.analyze.rules.operators.calls.kinds import Call
from bragg.code.python_nodes import parts_of

_LAYERS = re.compile(r"Conv1d")
_SIZED = ("zeros", "ones", "empty", "full", "rand", "randn")
# On an H200, 64 filters of 4 x 16,384 values: transforms saved 46 % with 255 taps and 92 % with 2,001.
_LONG, _VERY_LONG = 255, 1000


def _is_long(least: int, most: float, file: FileText, statement: ast.stmt) -> bool:
    """Whether a convolution has filters of so many taps, one for each channel, at all positions."""
    made = [each for each in calls_at(statement, "conv1d") if len(each.args) > 1]
    taps = [max(_sizes(file, each.args[1]), default=0) for each in made if _is_of_channels(each)]
    for call in parts_of(statement, ast.Call):
        if is_layer(file, call, _LAYERS):
            layers = [each for each in makers_of_called(file, call) if isinstance(each, ast.Call)]
            sizes = [argument(each, "kernel_size", 2) for each in layers if _is_of_channels(each)]
            taps += [number for each in sizes if each is not None for number in _numbers(file, each)]
    return any(least <= each < most for each in taps)


def _is_of_channels(conv: ast.Call) -> bool:
    """Whether a convolution is in groups, and leaves no position out."""
    given = {name: argument(conv, name) for name in ("groups", "stride", "dilation")}
    return given["groups"] is not None and all(
        value is None or ast.unparse(value) == "1" for name, value in given.items() if name != "groups"
    )


def _sizes(file: FileText, weight: ast.expr) -> Iterator[int]:
    """The last sizes of tensors that a weight is made of: `nn.Parameter(torch.randn(16, 1, taps) * 0.1)`."""
    for made in file.makers(weight):
        for each in parts_of(made, ast.Call):
            if call_name(each) in _SIZED and each.args:
                yield from _numbers(file, each.args[-1])


def _numbers(file: FileText, value: ast.expr) -> Iterator[int]:
    made = (each.value for each in file.makers(value) if isinstance(each, ast.Constant))
    return (each for each in made if isinstance(each, int))


def _call(what: str, least: int, most: float, saved: float) -> Call:
    return Call(
        f"filters of {what} taps, one for each channel, are applied tap by tap",
        "multiply Fourier transforms: irfft(rfft(x, n) * rfft(weight.flip(-1), n), n), where n is no less than the "
        "lengths of both together, and cut what is beyond",
        "conv1d|_conv_depthwise\\w*",
        partial(_is_long, least, most),
        saved,
    )


LONG_FILTERS = (
    _call("hundreds of", _LONG, _VERY_LONG, 0.4),
    _call("a thousand or more", _VERY_LONG, float("inf"), 0.85),
)
