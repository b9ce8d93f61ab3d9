"""What a program gains when work of the GPU goes away with the host's code that launches it."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import below, named
from bragg.analyze.causes.whole_gain import whole_gain
from tests.support.recordings import without_timeline
from tests.support.stepped import stepped

PAD = "host 0-6 aten::pad#operator ->1\ngpu 8-{} aten::pad#operator > fill#kernel <-1\n"
CONV = "host 6-12 aten::conv2d#operator ->2\ngpu {}-{} aten::conv2d#operator > conv#kernel <-2\n"
WAITS = "host 14-97 aten::item#operator > aten::_local_scalar_dense#operator > cudaStreamSynchronize#gpu_api"


def gain_without_pad(pad_us: int, conv_us: int) -> float:
    """Share that a step of 100 us gains, in which the host launches for 12 us and then waits."""
    text = PAD.format(8 + pad_us) + CONV.format(8 + pad_us, 8 + pad_us + conv_us) + WAITS
    evidence = Evidence(without_timeline(stepped(text, 100)))
    gain = whole_gain(evidence, below(evidence.profile, named(evidence.profile, "aten::pad".__eq__)))
    assert gain is not None
    return gain.share


@pytest.mark.parametrize(("pad_us", "conv_us"), [(10, 40), (20, 10)])
def test_launches_that_take_little_beside_waits_are_little_saved(pad_us: int, conv_us: int) -> None:
    # Beside the GPU's time: a third of what the host takes, that the GPU waits for or that it hides.
    assert pad_us / 100 <= gain_without_pad(pad_us, conv_us) <= pad_us / 100 + 0.16
