"""What stands in for `torch.cuda` where there is no GPU agrees with what Triton's driver says."""

from __future__ import annotations

import pytest

from bragg.debug.faults import Unsupported
from bragg.debug.host.driver import HostDevice, HostDriver


def test_properties_are_those_of_the_driver() -> None:
    properties, driver = HostDevice.get_device_properties("cuda"), HostDriver().get_device_properties(0)
    assert properties.multi_processor_count == driver["multiprocessor_count"]
    assert properties.shared_memory_per_block_optin == driver["max_shared_mem"]
    assert (properties.major, properties.minor) == HostDevice.get_device_capability()
    assert properties.name == HostDevice.get_device_name(0)


def test_choosing_the_device_passes_exceptions_on() -> None:
    with pytest.raises(KeyError), HostDevice.device(0):
        raise KeyError
    assert HostDevice.current_device() == 0


def test_every_stand_in_has_the_name_of_a_part_of_pytorch() -> None:
    cuda = pytest.importorskip("torch").cuda
    assert [name for name in vars(HostDevice) if not name.startswith("_") and not hasattr(cuda, name)] == []


def test_a_launch_that_reaches_the_driver_is_refused() -> None:
    launch = HostDriver().launcher_cls(None, None)
    with pytest.raises(Unsupported, match="it was not executed"):
        launch(1, 1, 1, 0)
