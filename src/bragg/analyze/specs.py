"""What a device can reach at most: floating-point rates and memory bandwidth, from its own record and from peaks.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bragg.analyze.peaks import AMD_BOARD_BYTES_PER_S, AMD_BYTES_PER_S, ARCHITECTURES, BOARDS, Architecture, Board
from bragg.errors import UsageError

WIDTHS = (4, 8, 16, 32, 64)

# What Proton takes for every device of an architecture, whatever its multiprocessors and its clock: A100, RTX 4090.
_PROTON_FLOPS8_PER_S = {"80": 624e12, "89": 330.3e12}
# What Proton takes for each device is the memory of the whole MI250X.
_PROTON_BYTES_PER_S = {**AMD_BYTES_PER_S, "gfx90a": 3.2e12}
_PROTON_ARCHITECTURES = ("80", "89", "90", "100", *AMD_BYTES_PER_S)


class UnknownDevice(UsageError, ValueError):  # noqa: N818
    """No peak is known for a device."""


@dataclass(frozen=True)
class Peak:
    """What one device can reach at most.

    Attributes:
        device: Its name, or its architecture where the record has no name.
        flops_per_s: By width in bits, the faster of tensor and ordinary cores; empty when unknown. A width that the
            device has no units for has the rate of the next wider one, on which such numbers are computed.
        bytes_per_s: Of the device's memory; None when unknown.
        source: Where the rates are from; empty when unknown.
        missing: What is unknown and why, one line; empty when all is known.
    """

    device: str
    flops_per_s: Mapping[int, float]
    bytes_per_s: float | None
    source: str
    missing: str

    def key(self) -> tuple[object, ...]:
        """Equal for devices that can reach the same."""
        return self.device, tuple(sorted(self.flops_per_s.items())), self.bytes_per_s


def find(device: Mapping[str, Any]) -> Peak:
    """The peak of a device, as far as its record and the published rates tell.

    Args:
        device: A row of `meta["devices"]`: `name`, `arch`, `num_sms`, `clock_khz`, `memory_clock_khz`,
            `bus_width_bits`; any of them may be missing.
    """
    arch = str(device.get("arch") or "")
    name = str(device.get("name") or "")
    label = name or (_arch_text(arch) if arch else "unknown device")
    flops, missing_flops = _flops_per_s(device, arch, name)
    bandwidth, missing_bandwidth = _bytes_per_s(device, arch)
    missing = "; ".join(filter(None, (missing_flops, missing_bandwidth)))
    if missing and label not in missing:
        missing = f"{label}: {missing}"
    return Peak(label, flops, bandwidth, _source(arch, name) if flops else "", missing)


def max_flops(device_type: str, arch: str, width: int, num_sms: int, clock_rate: float) -> float:
    """Peak of floating-point operations in a second, by the rule of Proton where Proton has one.

    Proton divides the rate of 8 bits by the width, also where a chip's 64-bit units are slower than that; and it takes
    one product for all devices of sm_80 and of sm_89. `find` does neither.

    Args:
        device_type: `CUDA` or `HIP`.
        arch: `90`, `gfx942`.
        width: Of the numbers, bits.
        num_sms: Multiprocessors.
        clock_rate: Highest clock, kHz.

    Raises:
        UnknownDevice: No rate is known.
    """
    rates = _architecture_of(device_type, arch)
    if arch not in _PROTON_ARCHITECTURES:
        return _of_all_widths(_native_rates(rates))[width] * num_sms * _clock_hz(rates, clock_rate)
    flops8 = _PROTON_FLOPS8_PER_S.get(arch) or rates.tensor[8] * num_sms * clock_rate * 1e3
    return flops8 / (width / 8)


def max_bps(device_type: str, arch: str, bus_width: float, memory_clock_rate: float) -> float:
    """Peak of bytes in a second, by the rule of Proton.

    Args:
        device_type: `CUDA` or `HIP`.
        arch: `90`, `gfx942`; only AMD's devices need it.
        bus_width: Of the memory interface, bits.
        memory_clock_rate: kHz; two transfers a clock.

    Raises:
        UnknownDevice: No bandwidth is known.
    """
    if device_type == "CUDA":
        return 2 * bus_width * memory_clock_rate * 1e3 / 8
    _architecture_of(device_type, arch)
    return _PROTON_BYTES_PER_S[arch]


def _architecture_of(device_type: str, arch: str) -> Architecture:
    if device_type not in ("CUDA", "HIP"):
        raise UnknownDevice(f"Unsupported device type: {device_type}", hint="CUDA or HIP")
    if arch not in ARCHITECTURES or arch.startswith("gfx") != (device_type == "HIP"):
        raise UnknownDevice(f"Unsupported architecture: {arch}", hint=f"Known: {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[arch]


def _flops_per_s(device: Mapping[str, Any], arch: str, name: str) -> tuple[dict[int, float], str]:
    """Rates by width, or why there are none."""
    if not arch:
        return {}, "its architecture was not recorded"
    if arch not in ARCHITECTURES:
        return {}, f"no peaks are known for {_arch_text(arch)}"
    num_sms, clock_khz = _number(device, "num_sms"), _number(device, "clock_khz")
    if not num_sms or not clock_khz:
        return {}, "its multiprocessors and their clock were not recorded"
    rates = ARCHITECTURES[arch]
    clocks_per_s = num_sms * _clock_hz(rates, clock_khz)
    # Proton's files have no names, and Proton takes the RTX 4090 for all of sm_89.
    halved = "GeForce" in name or (not name and arch == "89")
    flops = {width: rate * clocks_per_s for width, rate in _native_rates(rates, halved=halved).items()}
    board = _board(name)
    if board:
        share = num_sms / board.num_sms if " MIG " in name else 1.0
        flops.update({width: rate * share for width, rate in board.flops_per_s.items()})
    return _of_all_widths(flops), ""


def _native_rates(architecture: Architecture, *, halved: bool = False) -> dict[int, float]:
    """Flops per clock and multiprocessor of the widths that there are units for."""
    tensor = {
        width: rate / (2 if halved and width in architecture.halved_on_geforce else 1)
        for width, rate in architecture.tensor.items()
    }
    both = {*tensor, *architecture.cores}
    return {width: max(tensor.get(width, 0.0), architecture.cores.get(width, 0.0)) for width in both}


def _of_all_widths(native: Mapping[int, float]) -> dict[int, float]:
    """Rates in which a width without units has that of the next wider one."""
    return {width: native[min(w for w in native if w >= width)] for width in WIDTHS}


def _clock_hz(architecture: Architecture, clock_khz: float) -> float:
    return min(clock_khz, architecture.highest_clock_khz or clock_khz) * 1e3


def _bytes_per_s(device: Mapping[str, Any], arch: str) -> tuple[float | None, str]:
    """Memory bandwidth, or why it is unknown."""
    if arch in AMD_BYTES_PER_S:
        name = str(device.get("name") or "")
        of_board = (rate for board, rate in AMD_BOARD_BYTES_PER_S.items() if board in name)
        return next(of_board, AMD_BYTES_PER_S[arch]), ""
    bus_width_bits, clock_khz = _number(device, "bus_width_bits"), _number(device, "memory_clock_khz")
    if not bus_width_bits or not clock_khz:
        return None, "its memory's clock and width were not recorded"
    return max_bps("CUDA", arch, bus_width_bits, clock_khz), ""


def _number(device: Mapping[str, Any], key: str) -> float:
    """A number of the record; 0 where the driver did not tell."""
    value = device.get(key)
    return float(value) if isinstance(value, (int, float)) and value > 0 else 0.0


def _board(name: str) -> Board | None:
    return next((board for board in BOARDS if re.search(board.name, name)), None)


def _source(arch: str, name: str) -> str:
    board = _board(name)
    return board.source if board else ARCHITECTURES[arch].source


def _arch_text(arch: str) -> str:
    return arch if arch.startswith("gfx") else f"sm_{arch}"
