"""Optimizers that update one tensor after the other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_steps import GPU_TIME_OR_STEPS, HostCost, host_costs, host_steps
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.text.makers import moved_to_makers
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.thresholds import MANY_KERNELS, OF_STEP
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "optimizer-loop",
    "the optimizer launches kernels for each parameter",
    "fused=True (or foreach=True) for the optimizer",
    0.9,
    Confidence.PROVEN,
    with_host=True,
    least_share=0.0,
)
# They update one parameter after the other, and have no other way.
_ALONE = re.compile(r"Optimizer\.step#(?:SparseAdam|LBFGS|Muon)\b")
_WITHOUT_GPU = HostCost(
    "optimizer-loop", "the optimizer updates one parameter after the other", "fused=True for the optimizer", 0.5
)
_HAS_FUSED = re.compile(r"Optimizer\.step#(?:Adam|AdamW|SGD|Adagrad)\.")
_HAS_FOREACH = re.compile(r"Optimizer\.step#(?:ASGD|Adadelta|Adafactor|Adamax|NAdam|RAdam|RMSprop|Rprop)\.")
_OPTIONS = ("foreach", "fused", None)  # None: `**options`
_OWN = "torch._foreach_mul_, torch._foreach_add_ and the like over the list of all parameters, not over one at a time"
# PyTorch's functions for one parameter after the other; with one launch there is but one parameter.
_SINGLE, _SEVERAL = re.compile(r"_single_tensor_\w+$"), 2
_IS_ONE, _FUSED = re.compile(r"aten::\w+_$"), re.compile(r"aten::_(?:fused|foreach)_")
_TOGETHER = re.compile(r"multi_tensor_apply|fused|foreach|triton_", re.I)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    step = below(profile, named(profile, _can_be_together))
    if (steps := host_steps(evidence)) is not None:
        step = below(profile, named(profile, _HAS_FUSED.match))
        operators = step & named(profile, _IS_ONE.match) & ~below(profile, named(profile, _FUSED.match))
        if float(evidence.calls[operators].sum()) >= MANY_KERNELS.value * steps.made:
            yield from host_costs(evidence, step, _WITHOUT_GPU)
        return
    kernels = step & (profile.tree.kind == FrameKind.KERNEL)
    single = kernels & ~named(profile, _TOGETHER.search)
    count, n_single = float(evidence.gpu_count[kernels].sum()), float(evidence.gpu_count[single].sum())
    looped = float(evidence.gpu_count[kernels & below(profile, named(profile, _SINGLE.match))].sum())
    is_many = n_single >= MANY_KERNELS.value * evidence.steps and n_single >= count / 2
    if is_many or looped >= _SEVERAL * evidence.steps:
        work = replace(_WORK, change=_change(profile.tree.frames.name))
        for finding in work_findings(evidence, step, work):
            yield moved_to_makers(evidence, finding, _with_option)


def _with_option(file: FileText, call: ast.Call) -> list[ast.Call]:
    """Where the optimizer of `optimizer.step()` is made, if options are given there that may say how it updates."""
    if call_name(call) != "step" or not isinstance(call.func, ast.Attribute):
        return []
    made = [each for each in file.makers(call.func.value) if isinstance(each, ast.Call)]
    return [each for each in made if any(option.arg in _OPTIONS for option in each.keywords)]


def _change(names: Iterable[str]) -> str:
    """What the optimizers among these names can do: those of PyTorch have an option, a program's own have none."""
    steps = [name for name in names if _can_be_together(name)]
    if any(map(_HAS_FUSED.match, steps)):
        return _WORK.change
    return "foreach=True for the optimizer" if any(map(_HAS_FOREACH.match, steps)) else _OWN


def _can_be_together(name: str) -> bool:
    return name.startswith("Optimizer.step#") and not _ALONE.match(name)


RULE = Rule(
    _find,
    "optimizers that update parameters one by one",
    (GPU_TIME_OR_STEPS,),
    (MANY_KERNELS, OF_STEP),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
