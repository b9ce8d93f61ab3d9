"""Kernels that compute in 64 bits, which GPUs for machine learning do at a fraction of the speed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.invariants import computed
from bragg.analyze.causes.needs import GPU_TIME
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.program_text import FileText, call_name
from bragg.analyze.causes.text_calls import lines_of, statements_above
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.grouping.hlo_names import DOUBLE, PROMOTED_DOUBLE
from bragg.model import Confidence, Finding, Place

__all__ = ["RULE"]

# Half of the bytes at least; products gain more, up to the 15 of TF32 beside FP64 on tensor cores.
_SAVED, _HALF = 0.7, 0.5
_CHANGE = (
    "use float32: NumPy's arrays are float64 unless converted (torch.from_numpy(x).float()), JAX's with jax_enable_x64"
)
_OF_LIBRARIES = Work(
    "double-precision",
    "kernels of libraries in 64-bit floating point",
    _CHANGE,
    _SAVED,
    Confidence.LIKELY,
    least_share=0.05,
)
_OF_XLA = Work(
    "double-precision",
    "operations of JAX in 64-bit floating point",
    "float32: jnp.zeros(n, jnp.float32) and the like, or without jax_enable_x64 if only integers need it",
    _HALF,
    Confidence.LIKELY,
    least_share=0.05,
    is_launched=True,
)
_ENABLES = re.compile(r"\bjax_enable_x64\b.*True|\bJAX_ENABLE_X64\b|\benable_x64\(")
_MAKES = ("from_numpy", "as_tensor", "double")
_IS_DOUBLE = re.compile(r"(?:(?:np|numpy|torch)\.)?float64|torch\.double")
_IS_CONVERTED = re.compile(r"float32|float16|torch\.float\b|int\d+|bool")
_CONVERTS = ("float", "half", "bfloat16", "long", "int", "bool")
_DOUBLE = re.compile(
    r"\bdouble\b|dgemm|_d884|f64f64_f64f64|f64gemm|_f64(?:_|\b)|dsyrk|dtrsm"
    # PyTorch's elementwise kernels as compilers write their names: functors of doubles, and lambdas that take them.
    r"|^_ZN2at6native.*(?:(?:Functor|_[a-z]+)Id+(?:E|NS)|EUld+E_)"
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    of_xla = below(evidence.profile, named(evidence.profile, DOUBLE.__eq__))
    promoted = below(evidence.profile, named(evidence.profile, PROMOTED_DOUBLE.__eq__))  # a rule of its own
    others = named(evidence.profile, _DOUBLE.search) & ~of_xla & ~promoted
    for finding in work_findings(evidence, others, _OF_LIBRARIES):
        yield moved_to(finding, _made(evidence, finding))
    for finding in work_findings(evidence, of_xla, _OF_XLA):
        yield moved_to(finding, lines_of(evidence, _ENABLES))


def _made(evidence: Evidence, finding: Finding) -> list[Place]:
    """Where the numbers of 64 bits come from that the line of a finding computes with, by the program's text."""
    tree = evidence.profile.tree
    if finding.node is None:
        return []
    for line, file, statement in statements_above(evidence, finding.node):
        value = computed(statement)
        makers = [each for each in file.origins(value) if _makes_doubles(file, each)] if value else []
        if makers:
            name = tree.frames.file[int(tree.frame[line])]
            return [Place(name, each) for each in dict.fromkeys(getattr(part, "lineno", 0) for part in makers)]
    return []


def _makes_doubles(file: FileText, part: ast.AST) -> bool:
    """Whether it is a call that asks for 64 bits, or takes an array of NumPy as it is."""
    if not isinstance(part, ast.Call):
        return False
    above = file.parents.get(part)
    if isinstance(above, ast.Attribute) and above.attr in _CONVERTS:
        return False
    given = [ast.unparse(each) for each in (*part.args, *(keyword.value for keyword in part.keywords))]
    if any(map(_IS_CONVERTED.search, given)):
        return False
    return call_name(part) in _MAKES or any(map(_IS_DOUBLE.fullmatch, given))


RULE = Rule(_find, "kernels in 64-bit floating point", (GPU_TIME,), (MUCH_GPU,), _CHANGE)
