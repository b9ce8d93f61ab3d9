from __future__ import annotations

import pytest

from bragg.proton import mode


def test_sampling_mode_says_its_interval() -> None:
    assert str(mode.PCSampling(interval=500)) == "pcsampling:interval=500"


@pytest.mark.parametrize("interval", [0, -1])
def test_sampling_interval_must_be_positive(interval: int) -> None:
    with pytest.raises(ValueError, match="Interval must be a positive integer"):
        mode.PCSampling(interval=interval)


def test_instrumentation_mode_takes_names_for_its_choices() -> None:
    chosen = mode.Default(granularity="warp_4", buffer_type="global", optimizations="clock32, time_shift")
    assert chosen.granularity is mode.granularities["warp_4"]
    assert str(chosen) == (
        "default:metric_type=METRIC_TYPE.CYCLE:sampling_strategy=SAMPLING_STRATEGY.NONE:sampling_options="
        ":granularity=GRANULARITY.WARP_4:buffer_strategy=BUFFER_STRATEGY.CIRCULAR:buffer_type=BUFFER_TYPE.GLOBAL"
        ":buffer_size=0:optimizations=clock32,time_shift"
    )


def test_unknown_choice_is_named() -> None:
    with pytest.raises(ValueError, match="Unknown buffer_type: disk"):
        mode.MMA(buffer_type="disk")
    with pytest.raises(ValueError, match="Unknown optimization: speed"):
        mode.Default(optimizations="speed")
