"""Operators for whose purpose, as the operators beside them tell, PyTorch has cheaper ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, OPERATORS
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.work_finding import Work, work_findings
from bragg.analyze.engine import HostTime, Rule
from bragg.model import Confidence, Finding
from bragg.model.table import BoolArray

_NAME = "cheaper-operator"


def _windows(evidence: Evidence) -> BoolArray:
    """Windows that are written out for a product, and the product."""
    unfolds = _called(evidence, r"aten::im2col")
    products = _called(evidence, r"aten::(?:matmul|bmm|einsum|mm)")
    near = evidence.callers.near(unfolds, products)
    return near | evidence.callers.near(products, near)


def _logarithms(evidence: Evidence) -> BoolArray:
    softmax, log = _called(evidence, r"aten::_?softmax"), _called(evidence, r"aten::log_?")
    after = evidence.callers.near(log, softmax, before=True)
    return after | evidence.callers.near(softmax, after)


def _real_transforms(evidence: Evidence) -> BoolArray:
    """Complex transforms of real numbers, and inverse ones of which the real part is taken."""
    profile = evidence.profile
    whole = _called(evidence, r"aten::fft_fft[2n]?")
    is_real = np.zeros(len(whole), np.bool_)
    # Of several axes the transform makes complex numbers first, of one the other half afterwards (2.4 to 2.11).
    makes_complex = named(profile, re.compile(r"aten::(?:_fft_r2c|to)").fullmatch) & evidence.has_work
    is_real[profile.tree.parent[makes_complex]] = True
    inverse = evidence.callers.near(_called(evidence, r"aten::fft_ifft[2n]?"), _called(evidence, r"aten::real"))
    return (whole & is_real) | (inverse if (whole & is_real).any() else np.zeros_like(inverse))


def _log_products(evidence: Evidence) -> BoolArray:
    """Sums of all pairs whose exponentials are added up."""
    adds, sums = _called(evidence, r"aten::add"), _called(evidence, r"aten::logsumexp")
    rows = evidence.callers.counted_near(adds, _called(evidence, r"aten::unsqueeze"), evidence.calls)
    pairs = evidence.callers.near(adds, sums) & (rows >= np.maximum(evidence.calls, 1)) & (rows > 0)
    return pairs | evidence.callers.near(sums, pairs)


def _cosines(evidence: Evidence) -> BoolArray:
    """Cosines of all pairs of rows."""
    cosines = _called(evidence, r"aten::cosine_similarity")
    rows = evidence.callers.counted_near(cosines, _called(evidence, r"aten::unsqueeze"), evidence.calls)
    return cosines & (rows >= 2 * np.maximum(evidence.calls, 1))


def _distances(evidence: Evidence) -> BoolArray:
    """Euclidean distances that are computed pair by pair, without a product."""
    pairs = named(evidence.profile, re.compile(r"cdist_kernel_cuda_impl.*two").search)
    of_pairs = evidence.profile.tree.sum_up(pairs.astype(np.int64)) > 0
    return _called(evidence, r"aten::cdist") & of_pairs


def _called(evidence: Evidence, pattern: str) -> BoolArray:
    return named(evidence.profile, re.compile(pattern).fullmatch) & (evidence.callers.line > 0)


_WORKS: tuple[tuple[Callable[[Evidence], BoolArray], str, str, float], ...] = (
    (
        _windows,
        "windows of an image are written out and multiplied with weights",
        "torch.nn.functional.conv2d: a convolution writes no windows",
        0.7,
    ),
    (
        _logarithms,
        "the logarithm of a softmax, which is written first",
        "torch.log_softmax; with the class that is right, nn.functional.cross_entropy: one pass, and no log(0)",
        0.6,
    ),
    (
        _real_transforms,
        "complex Fourier transforms of real numbers, half of whose result repeats the other half",
        "torch.fft.rfft and irfft (rfft2, irfft2)",
        0.45,
    ),
    (
        _cosines,
        "cosines of all pairs of rows, whose products are written for each pair",
        "normalize the rows, and multiply: F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T",
        0.9,
    ),
    (
        _distances,
        "Euclidean distances of all rows are computed pair by pair",
        'torch.cdist with compute_mode="use_mm_for_euclid_dist": one matrix product, which loses digits where rows '
        "are far from 0 and near to each other",
        0.9,
    ),
    (
        _log_products,
        "sums of logarithms of all pairs are written, and their exponentials added up",
        "a matrix product of exponentials: m = a.amax(1, keepdim=True); (a - m).exp() @ t.exp() in place of "
        "logsumexp(a[:, :, None] + t, 1), then log() + m",
        0.85,
    ),
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    for nodes_of, what, change, saved in _WORKS:
        work = Work(_NAME, what, change, saved, Confidence.HEURISTIC, with_host=True, least_share=0.1, is_launched=True)
        yield from work_findings(evidence, below(evidence.profile, nodes_of(evidence)), work)


RULE = Rule(
    _find,
    "operators instead of which others need less work",
    (GPU_TIME, OPERATORS),
    (),
    "conv2d instead of unfold and a product; log_softmax or cross_entropy; rfft; products of normalized rows, or of "
    "exponentials",
    host_time=HostTime.CAUSE,
)
