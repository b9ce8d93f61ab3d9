"""Work in 64 bits: GPUs for machine learning do it at a fraction of the speed, CPUs at half of it.

Kernels tell by their names; of a CPU's operators the program's text does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import moved_to
from bragg.analyze.causes.host_steps import HostCost
from bragg.analyze.causes.host_work import host_work
from bragg.analyze.causes.needs import GPU_TIME, TEXT, Need
from bragg.analyze.causes.paths import below, named, place_of
from bragg.analyze.causes.text.double_values import DoubleValues
from bragg.analyze.causes.text.invariants import computed
from bragg.analyze.causes.text.program_text import FileText, call_name
from bragg.analyze.causes.text.text_calls import factors_of, lines_of, statements_above
from bragg.analyze.causes.thresholds import MUCH_GPU
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import Rule
from bragg.code.python_nodes import walk
from bragg.grouping.hlo_names import DOUBLE, PROMOTED_DOUBLE
from bragg.model import Confidence, Finding, FrameKind, Place
from bragg.model.ids import NodeId
from bragg.model.table import BoolArray

# Half of the bytes at least; products gain more, up to the 15 of TF32 beside FP64 on tensor cores.
_SAVED, _HALF = 0.7, 0.5
_CHANGE = (
    "use float32 and complex64: NumPy's arrays have 64 bits a number unless converted (torch.from_numpy(x).float()), "
    "JAX's with jax_enable_x64"
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
    r"|^_ZN2at6native.*(?:(?:Functor|_[a-z]+)Id+(?:E|NS)|EUld+E_|complexIdE)"
    # cuFFT's, whose types follow their layout: an index, and numbers.
    r"|\bdp(?:Radix|Vector|Real)|^_Z\d+\w*fft.*?layout_t\dE[jmy]d|^_Z\d+dp(?:Radix|Vector|Real)"
)
# Passes over memory, which doubles make twice as long.
_PASSES = re.compile(r"complexIdE|complex<double>|fft|dp(?:Radix|Vector|Real)")


_ON_HOST = HostCost(
    "double-precision",
    "operators compute in 64-bit floating point, since numbers of NumPy meet tensors of 32 bits here",
    "make NumPy's arrays float32 before they become tensors (dtype=np.float32, torch.from_numpy(x).float())",
    _HALF,
)
_PRODUCTS = re.compile(r"aten::(?:matmul|bmm|mm|linear|einsum|baddbmm|addmm)")
_MULTIPLY = ("matmul", "bmm", "mm", "linear", "einsum", "baddbmm", "addmm")
_NEED = Need(
    "GPU time, or operators of PyTorch and the text of a program without a GPU",
    "",
    lambda evidence: (
        GPU_TIME.is_met(evidence)
        or (TEXT.is_met(evidence) and bool(named(evidence.profile, lambda name: name.startswith("aten::")).any()))
    ),
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.profile.measured("gpu_time"):
        yield from _on_host(evidence)
        return
    of_xla = below(evidence.profile, named(evidence.profile, DOUBLE.__eq__))
    promoted = below(evidence.profile, named(evidence.profile, PROMOTED_DOUBLE.__eq__))  # a rule of its own
    others = named(evidence.profile, _DOUBLE.search) & ~of_xla & ~promoted
    passes_ns = float(evidence.gpu_ns[others & named(evidence.profile, _PASSES.search)].sum())
    of_passes = passes_ns / max(float(evidence.gpu_ns[others].sum()), 1.0)
    work = replace(_OF_LIBRARIES, saved=_SAVED + (_HALF - _SAVED) * of_passes)
    for finding in work_findings(evidence, others, work):
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


def _on_host(evidence: Evidence) -> Iterator[Finding]:
    """Operators of lines that compute with 64 bits, where the text says that NumPy's numbers bring them in."""
    told = _told(evidence)
    if told.meetings:
        for finding in host_work(evidence, below(evidence.profile, told.wide), _ON_HOST):
            yield moved_to(finding, told.meetings)


class _Told(NamedTuple):
    """What the text says of 64 bits.

    Attributes:
        wide: Operators that compute with them, unless the program asks for them everywhere: [n_nodes].
        meetings: Lines where they meet fewer bits, then lines that make them.
        is_meant: Whether a file asks for them everywhere, or of a whole model.
    """

    wide: BoolArray
    meetings: list[Place]
    is_meant: bool


def _told(evidence: Evidence) -> _Told:
    tree, line = evidence.profile.tree, evidence.callers.line
    values: dict[FileText, DoubleValues] = {}
    wide, meetings, makers = np.zeros(len(tree), np.bool_), list[Place](), list[Place]()
    for each in np.unique(line[(line > 0) & (tree.kind == FrameKind.OPERATOR)]).tolist():
        file, statement = evidence.text.at(each) or (None, None)
        told = values.setdefault(file, DoubleValues(file)) if file else None
        value = computed(statement) if statement else None
        if told is None or value is None or told.is_meant or not any(map(told.is_double, walk(value))):
            continue
        wide |= _operators(evidence, each, has_products=_multiplies(told, value))
        if told.meets_fewer_bits(value) and (calls := told.makers(value)):
            name = tree.frames.file[int(tree.frame[each])]
            meetings.append(place_of(evidence.profile, NodeId(each)))
            makers += [Place(name, call.lineno) for call in calls]
    return _Told(wide, [*meetings, *makers], any(told.is_meant for told in values.values()))


def _may_be_accident(evidence: Evidence) -> bool:
    """Whether a program without a GPU that computes with 64 bits mixes them with fewer: else it may mean them."""
    if GPU_TIME.is_met(evidence):
        return True
    told = _told(evidence)
    return bool(told.meetings) or not (told.is_meant or told.wide.any())


def _operators(evidence: Evidence, line: int, *, has_products: bool) -> BoolArray:
    """Operators that a line calls; its matrix products, if they are of 64 bits: [n_nodes]."""
    called: BoolArray = (evidence.callers.line == line) & (evidence.profile.tree.kind == FrameKind.OPERATOR)
    return called if has_products else called & ~named(evidence.profile, _PRODUCTS.match)


def _multiplies(told: DoubleValues, value: ast.expr) -> bool:
    """Whether an expression multiplies matrices of 64 bits."""
    products = [each for each in walk(value) if factors_of(each, _MULTIPLY)]
    return any(map(told.is_double, products))


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


_MIXED = Need("numbers of 32 bits beside those of 64", "", _may_be_accident, is_of_program=True)

RULE = Rule(_find, "kernels and operators in 64-bit floating point", (_NEED, _MIXED), (MUCH_GPU,), _CHANGE)
