"""Gradients that are looked at for NaN, one after the other, because anomaly mode is on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, in_files, named
from bragg.analyze.causes.text.text_calls import lines_of
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding, FrameKind

_WORK = Work(
    "anomaly-mode",
    "anomaly mode looks for NaN in each gradient and waits for the answer",
    "remove torch.autograd.set_detect_anomaly(True): it is for debugging",
    1.0,
    Confidence.PROVEN,
    with_host=True,
    least_share=0.0,
    is_launched=True,
)
# What the engine of autograd runs after each node of the backward pass (PyTorch 2.4 to 2.11), and how it keeps where
# the forward pass made the node.
_GRADIENT = re.compile(r"(?:autograd::engine::evaluate_function: )?\w+Backward\d*")
_LOOKS = re.compile(r"aten::(?:isnan|_is_any_true|any|item|is_nonzero)")
_SWITCH = re.compile(r"detect_anomaly\(")
_STACKS = re.compile(r"[/\\]torch[/\\]fx[/\\]traceback\.py$")


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, parent = evidence.profile, evidence.profile.tree.parent
    of_gradient = named(profile, _GRADIENT.fullmatch)[np.maximum(parent, 0)] & (parent >= 0)
    looks = of_gradient & named(profile, _LOOKS.fullmatch)
    is_nan = below(profile, looks & named(profile, "aten::isnan".__eq__))
    if not evidence.gpu_count[is_nan].any():
        return
    # An operator that makes a node waits for the stack that is kept of it: so does most of its time on the host.
    makes = np.zeros(len(parent), np.bool_)
    makes[parent[named(profile, "[backward]".__eq__)]] = True
    nodes = below(profile, looks | in_files(profile, _STACKS)) | (makes & (profile.tree.kind == FrameKind.OPERATOR))
    switches = lines_of(evidence, _SWITCH)
    for finding in work_findings(evidence, nodes, _WORK):
        yield moved_to(finding, switches)


RULE = Rule(
    _find,
    "anomaly mode, which looks for NaN in each gradient",
    (GPU_TIME,),
    (),
    _WORK.change,
    host_time=HostTime.CAUSE,
)
