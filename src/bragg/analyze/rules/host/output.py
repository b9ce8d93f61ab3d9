"""Programs that write within their steps: checkpoints, numbers for people, logs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.needs import IDLE
from bragg.analyze.causes.paths import below
from bragg.analyze.causes.thresholds import WRITING
from bragg.analyze.engine import Rule, Subject
from bragg.model import Confidence, Finding, FrameKind, Quantity

__all__ = ["RULE"]

# What is written less often, or beside the steps, is not gone.
_SAVED = 0.9
_LATER = "every some hundred steps, or from another thread: copy to pinned memory first"
_WRITERS = (
    (
        "saving a checkpoint",
        r"torch[/\\]serialization\.py|safetensors[/\\]\w+\.py|orbax[/\\].+\.py|distributed[/\\]checkpoint[/\\]\w+\.py",
        f"save {_LATER} (torch.distributed.checkpoint.async_save)",
    ),
    ("printing tensors", r"torch[/\\]_tensor_str\.py", "print .item() of what is needed, every some hundred steps"),
    ("logging", r"[/\\]logging[/\\]__init__\.py", "log every some hundred steps, and numbers, not tensors"),
    ("writing metrics", r"tensorboard\w*[/\\].+\.py|wandb[/\\].+\.py|mlflow[/\\].+\.py", f"write metrics {_LATER}"),
    ("saving arrays", r"numpy[/\\]lib[/\\]_?npyio\w*\.py|h5py[/\\].+\.py", f"save arrays {_LATER}"),
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree, idle_ns = evidence.profile, evidence.profile.tree, evidence.idle_ns
    if idle_ns is None or not evidence.wall_ns:
        return
    for what, files, change in _WRITERS:
        pattern = re.compile(rf"(?:^|[/\\])(?:{files})$")
        is_file = np.array([pattern.search(file) is not None for file in tree.frames.file], np.bool_)
        nodes = below(profile, is_file[tree.frame] & (tree.kind == FrameKind.PYTHON))
        waited_ns = float(idle_ns[nodes].sum())
        if waited_ns < WRITING.value * evidence.wall_ns or not waited_ns:
            continue
        each_ns = evidence.per_step(waited_ns)
        cause = Cause(
            "output-in-steps",
            f"the GPU waits {each_ns / 1e6:.3g} ms {evidence.step_word} for {what}",
            change,
            evidence.host_gain(nodes, _SAVED),
            Confidence.LIKELY,
            (Quantity(f"wait {evidence.step_word}", each_ns, "ns"),),
        )
        yield host_finding(evidence, nodes, idle_ns, cause)


RULE = Rule(
    _find,
    Subject.ANALYSIS,
    "checkpoints, prints and logs that a GPU waits for",
    (IDLE,),
    (WRITING,),
    "write less often, or from another thread",
)
