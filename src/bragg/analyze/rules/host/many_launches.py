"""Programs that launch so much small work that a GPU waits for the launches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause
from bragg.analyze.causes.needs import GPU_TIME, LAUNCH_COUNT
from bragg.analyze.causes.statements import statement_finding
from bragg.analyze.causes.thresholds import FEW_LAUNCHES, IDLE_GPU, MANY_LAUNCHES, SHORT_KERNEL
from bragg.analyze.engine import HostTime, Rule
from bragg.code.python_nodes import parts_of
from bragg.model import Confidence, Finding, FrameKind, Quantity
from bragg.model.ids import NodeId

# A graph is launched once, but its inputs are still copied and it waits for what it needs: measured 0.7 to 0.95.
_SAVED = 0.8
_ONE_GRID = (
    "one launch for all turns of the loop, if they do not need each other: a program of the grid for each, which "
    "tells its turn by tl.program_id; else a CUDA graph of the loop"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree, idle_ns = evidence.profile.tree, evidence.idle_ns
    n_launches = evidence.n_launches or 0.0
    kernels = tree.kind == FrameKind.KERNEL
    n_kernels = float(evidence.gpu_count[kernels].sum())
    least = MANY_LAUNCHES.value * evidence.n_steps if evidence.n_steps else FEW_LAUNCHES.value
    if n_launches < least or not n_kernels or idle_ns is None or (evidence.busy or 1.0) > IDLE_GPU.value:
        return
    mean_ns = float(evidence.gpu_ns[kernels].sum()) / n_kernels
    nodes = evidence.host.launching & (evidence.has_work | evidence.is_launch)
    if mean_ns > SHORT_KERNEL.value or not evidence.wall_ns:
        return
    waits_ns = float((idle_ns - evidence.code_wait_ns)[nodes].sum())
    host_ns = waits_ns / n_launches
    cause = Cause(
        "many-launches",
        f"{evidence.per_step(n_launches):,.0f} launches {evidence.step_word} of kernels that take "
        f"{mean_ns / 1e3:.1f} us each: the GPU waits {host_ns / 1e3:.1f} us for each launch",
        _change(evidence),
        evidence=(
            Quantity(f"launches {evidence.step_word}", evidence.per_step(n_launches)),
            Quantity("mean kernel", mean_ns, "ns"),
            Quantity("wait for each launch", host_ns, "ns"),
            Quantity("busy", evidence.busy or 0.0, "share"),
        ),
        gain=evidence.gain(waits_ns * _SAVED),
        confidence=Confidence.LIKELY,
    )
    finding = statement_finding(evidence, nodes, idle_ns, cause)
    is_single = finding.node is not None and _launches_single_programs(evidence, finding.node)
    yield replace(finding, hint=_ONE_GRID) if is_single else finding


def _launches_single_programs(evidence: Evidence, line: NodeId) -> bool:
    """Whether a loop launches a Triton kernel of one program, as in `kernel[(1,)](x[i])`."""
    file, statement = evidence.text.at(line) or (None, None)
    if file is None or statement is None or not file.loops_of(statement):
        return False
    launches = [each.func.slice for each in parts_of(statement, ast.Call) if isinstance(each.func, ast.Subscript)]
    grids = [each.elts for each in launches if isinstance(each, ast.Tuple)]
    return any(all(isinstance(n, ast.Constant) and n.value == 1 for n in grid) for grid in grids if grid)


def _change(evidence: Evidence) -> str:
    if any("generate" in name and "Generation" in name for name in evidence.profile.tree.frames.name):
        return 'give generate() cache_implementation="static", which compiles the step with CUDA graphs; larger batches'
    return 'torch.compile(mode="reduce-overhead") or a CUDA graph for the step; larger batches; fewer, fused operators'


RULE = Rule(
    _find,
    "many short kernels, each launched by itself, while the GPU waits",
    (GPU_TIME, LAUNCH_COUNT),
    (MANY_LAUNCHES, FEW_LAUNCHES, SHORT_KERNEL, IDLE_GPU),
    'torch.compile(mode="reduce-overhead"), a CUDA graph, or larger batches',
    host_time=HostTime.WHOLE,
)
