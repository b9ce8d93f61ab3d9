"""What programs write for people and for later: checkpoints, numbers, logs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bragg.analyze.causes.paths import below, in_files, named
from bragg.model import Profile
from bragg.model.table import BoolArray

PINNED = ": copy to pinned memory first"
"""What a change says of tensors of a GPU."""
_LATER = f"every some hundred steps, or from another thread{PINNED}"
# The same files read what they have written.
_WRITES = re.compile(r"(?:^|[._])_?(?:async_)?(?:save|write|dump|flush)|__setitem__$|create_dataset$")
_KINDS = (
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


@dataclass(frozen=True, eq=False)
class Writer:
    """Code that writes.

    Attributes:
        does: What it does: `saving a checkpoint`.
        change: What to do about it.
        nodes: In or below it: [n_nodes].
    """

    does: str
    change: str
    nodes: BoolArray


def writers(profile: Profile) -> list[Writer]:
    """The code of each kind that writes."""
    found = []
    for does, files, change in _KINDS:
        pattern = re.compile(rf"(?:^|[/\\])(?:{files})$")
        writing = in_files(profile, pattern)
        if does.startswith("saving"):
            writing &= named(profile, _WRITES.search)
        found.append(Writer(does, change, below(profile, writing)))
    return found
