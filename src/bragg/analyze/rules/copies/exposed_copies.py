"""Copies between the host and a GPU beside which nothing else runs, although they do not hold up the host."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.analyze.causes.alone import alone_ns
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, host_finding
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.staged import staged_copies
from bragg.analyze.causes.thresholds import EXPOSED, RECURRING
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, Quantity
from bragg.model.finding import percent_text

_TO_GPU = "copy the next batch from pinned memory on a torch.cuda.Stream of its own, while this one is computed"
_TO_HOST = "copy results to pinned memory on a torch.cuda.Stream of its own, while the next ones are computed"
# Of what kernels could cover: the first copy has none to run beside.
_SAVED = 0.9


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile = evidence.profile
    moves_model = below(profile, named(profile, "Module._apply".__eq__))
    copies = named(profile, ("copy HtoD", "copy DtoH").__contains__) & ~moves_model
    copies &= evidence.gpu_count >= RECURRING.value
    copies &= staged_copies(evidence)[0] == 0  # another rule names those
    alone, to_host = alone_ns(evidence, copies), named(profile, "copy DtoH".__eq__)
    total_ns = float(alone.sum()) / evidence.bounding.count
    if not evidence.wall_ns or not total_ns or total_ns < EXPOSED.value * evidence.wall_ns:
        return
    kernels_ns = float(evidence.bounding_ns[~copies].sum()) / evidence.bounding.count
    wall_ns = min(total_ns, kernels_ns) * _SAVED
    cause = Cause(
        "exposed-copies",
        f"{percent_text(total_ns / evidence.wall_ns)} of the wall time is copies between host and GPU while "
        "no kernel runs",
        _TO_HOST if float(alone[to_host].sum()) > float(alone.sum()) / 2 else _TO_GPU,
        evidence.gain(wall_ns, "the kernels" if kernels_ns < total_ns else ""),
        Confidence.LIKELY,
        (Quantity(f"alone {evidence.step_word}", evidence.per_step(total_ns), "ns"),),
    )
    yield host_finding(evidence, alone > 0, alone, cause)


RULE = Rule(
    _find,
    "copies that no kernel runs beside",
    (GPU_TIME,),
    (EXPOSED, RECURRING),
    "copy the next batch, or the last results, on a stream of its own",
)
