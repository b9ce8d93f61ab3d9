"""Convolutions of single pixels right after these were interpolated, as the program's text tells."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS, TEXT
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import argument, fits
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import parts_of
from bragg.model import Confidence, Finding

_WORK = Work(
    "late-layer",
    "images are upsampled with all their channels, and then given to a convolution of single pixels (1x1)",
    "exchange them, they commute: interpolate(conv(x)) is conv(interpolate(x)), with fewer channels to interpolate",
    0.7,
    Confidence.HEURISTIC,
    least_share=0.1,
)
# On an H200, four images of 256 channels, joined for 256: 15 % of interpolation, joining and convolution.
_JOINED = replace(
    _WORK,
    what="images are upsampled and joined, and then given to a convolution of single pixels (1x1)",
    change="convolve each at its own size with its part of the weight, then upsample and add up: fewer pixels are "
    "convolved, and nothing is joined",
    saved=0.15,
)
_CONVOLUTIONS = re.compile(r"aten::conv[23]?d|aten::convolution")
_UPSAMPLING = re.compile(r"aten::_?upsample_\w+")
_LAYERS = ("Conv1d", "Conv2d", "Conv3d")
_UPSAMPLES = ("interpolate", "upsample", "Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d")


def _find(evidence: Evidence) -> Iterator[Finding]:
    has_line = evidence.callers.line > 0
    convolutions = named(evidence.profile, _CONVOLUTIONS.fullmatch) & has_line
    upsamples = named(evidence.profile, _UPSAMPLING.fullmatch) & has_line
    for is_meant, work in ((_is_upsampled, _WORK), (_joins_upsampled, _JOINED)):
        late = fits(evidence, convolutions, partial(_is_late, is_meant))
        nodes = late | evidence.callers.near(upsamples, late)
        yield from work_findings(evidence, below(evidence.profile, nodes), work)


def _is_late(is_meant: Callable[[FileText, ast.expr], bool], file: FileText, statement: ast.stmt) -> bool:
    calls = [each for each in parts_of(statement, ast.Call) if each.args]
    return any(_is_of_pixels(file, each) and is_meant(file, each.args[0]) for each in calls)


def _is_of_pixels(file: FileText, call: ast.Call) -> bool:
    made = file.attributes.get(call_name(call), [])
    layers = [each for each in made if isinstance(each, ast.Call) and call_name(each) in _LAYERS]
    return any(_is_one(argument(each, "kernel_size", 2)) for each in layers)


def _is_one(size: ast.expr | None) -> bool:
    numbers = size.elts if isinstance(size, ast.Tuple) else [size]
    return all(isinstance(each, ast.Constant) and each.value == 1 for each in numbers)


def _joins_upsampled(file: FileText, value: ast.expr) -> bool:
    return any(_is_upsampled(file, part) for made in file.makers(value) for part in _joined(file, made))


def _joined(file: FileText, made: ast.expr) -> list[ast.expr]:
    """What a call joins: `torch.cat([a, b], 1)`, or of a list that a comprehension makes."""
    if not isinstance(made, ast.Call) or call_name(made) not in ("cat", "concat", "concatenate") or not made.args:
        return []
    lists = [made.args[0], *file.makers(made.args[0])]
    parts = [part for each in lists if isinstance(each, (ast.List, ast.Tuple)) for part in each.elts]
    return parts + [each.elt for each in lists if isinstance(each, (ast.ListComp, ast.GeneratorExp))]


def _is_upsampled(file: FileText, value: ast.expr) -> bool:
    makers = [each for each in file.makers(value) if isinstance(each, ast.Call)]
    behind = [made for each in makers for made in (each, *file.attributes.get(call_name(each), []))]
    return any(isinstance(each, ast.Call) and call_name(each) in _UPSAMPLES for each in behind)


RULE = Rule(_find, "convolutions of single pixels after upsampling", (GPU_TIME, OPERATORS, TEXT), (), _WORK.change)
