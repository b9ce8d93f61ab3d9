from __future__ import annotations

from itertools import pairwise

import pytest

from bragg.analyze.peaks import ARCHITECTURES
from bragg.analyze.specs import WIDTHS, UnknownDevice, find, max_bps, max_flops
from tests.support.work import H200

TERA = 1e12
# Name, architecture, multiprocessors and clock as the driver reports them; rates of the product's data sheet.
DATA_SHEETS = [
    ("Tesla V100-SXM2-16GB", "70", 80, 1_530_000, {16: 125, 32: 15.7, 64: 7.8}),
    ("Tesla T4", "75", 40, 1_590_000, {8: 130, 16: 65, 32: 8.1}),
    ("NVIDIA A100-SXM4-80GB", "80", 108, 1_410_000, {8: 624, 16: 312, 32: 156, 64: 19.5}),
    ("NVIDIA A30", "80", 56, 1_440_000, {8: 330, 16: 165, 32: 82, 64: 10.3}),
    ("NVIDIA A10", "86", 72, 1_695_000, {8: 250, 16: 125, 32: 62.5}),
    ("NVIDIA A10G", "86", 80, 1_710_000, {8: 140, 16: 70, 32: 35}),
    ("NVIDIA A40", "86", 84, 1_740_000, {8: 299.3, 16: 149.7, 32: 74.8}),
    ("NVIDIA GeForce RTX 3090", "86", 82, 1_695_000, {8: 284, 16: 71, 32: 35.6}),
    ("NVIDIA L4", "89", 58, 2_040_000, {8: 242, 16: 121}),
    ("NVIDIA L40", "89", 142, 2_490_000, {8: 362, 16: 181.05, 32: 90.5}),
    ("NVIDIA L40S", "89", 142, 2_520_000, {8: 733, 16: 366, 32: 183}),
    ("NVIDIA GeForce RTX 4090", "89", 128, 2_520_000, {8: 330.3, 16: 165.2, 32: 82.6}),
    ("NVIDIA H100 PCIe", "90", 114, 1_755_000, {8: 1513, 16: 756, 32: 378, 64: 51}),
    ("NVIDIA H100 80GB HBM3", "90", 132, 1_980_000, {8: 1979, 16: 989, 32: 494, 64: 67}),
    ("NVIDIA H100 NVL", "90", 132, 1_785_000, {4: 1671, 8: 1671, 16: 835, 64: 60}),
    ("NVIDIA H20", "90", 78, 1_980_000, {4: 296, 8: 296, 16: 148, 32: 74, 64: 1}),
    ("NVIDIA B200", "100", 148, 1_965_000, {4: 9000, 8: 4500, 16: 2250, 64: 37}),
    ("NVIDIA B300 SXM6 AC", "103", 148, 1_920_000, {4: 13500, 8: 4500, 64: 1.25}),
    ("NVIDIA Thor", "110", 20, 1_575_000, {4: 1035, 8: 517, 32: 129}),
    ("NVIDIA GeForce RTX 5090", "120", 170, 2_407_000, {4: 1676, 8: 419, 16: 209.5, 32: 104.8}),
    ("NVIDIA GB10", "121", 48, 2_500_000, {4: 500, 16: 125}),
    ("AMD Instinct MI250X", "gfx90a", 220, 1_700_000, {8: 383, 16: 383, 32: 95.7, 64: 95.7}),
    ("AMD Instinct MI300X", "gfx942", 304, 2_100_000, {8: 2614.9, 16: 1307.4, 32: 653.7, 64: 163.4}),
    ("AMD Instinct MI355X", "gfx950", 256, 2_400_000, {4: 10066, 8: 5033, 16: 2516.6, 32: 157.3, 64: 78.6}),
]
# Values of triton.profiler.specs 3.6.0 and 3.9.0 for 132 multiprocessors at 1,980 MHz.
PROTON_FLOPS8 = {
    ("CUDA", "80"): 624e12,
    ("CUDA", "89"): 330.3e12,
    ("CUDA", "90"): 132 / 114 * 1980 / 1755 * 1513e12,
    ("CUDA", "100"): 132 * 16384 * 1980e6,
    ("HIP", "gfx90a"): 132 * 1024 * 1980e6,
    ("HIP", "gfx942"): 132 * 4096 * 1980e6,
    ("HIP", "gfx950"): 132 * 8192 * 1980e6,
}


@pytest.mark.parametrize(
    ("name", "arch", "num_sms", "clock_khz", "rates"), DATA_SHEETS, ids=[row[0] for row in DATA_SHEETS]
)
def test_rates_of_a_product_are_those_of_its_data_sheet(
    name: str, arch: str, num_sms: int, clock_khz: int, rates: dict[int, float]
) -> None:
    peak = find({"name": name, "arch": arch, "num_sms": num_sms, "clock_khz": clock_khz})
    assert {width: peak.flops_per_s[width] / TERA for width in rates} == pytest.approx(rates, rel=0.02)
    assert peak.source


def test_memory_bandwidth_follows_from_bus_and_clock() -> None:
    assert find(H200).bytes_per_s == pytest.approx(4.814e12, rel=1e-3)
    assert find(H200).missing == ""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_architecture_has_a_rate_for_every_width_and_wider_is_never_faster(arch: str) -> None:
    rates = find({"arch": arch, "num_sms": 10, "clock_khz": 1_000_000}).flops_per_s
    assert list(rates) == list(WIDTHS)
    assert all(rates[wide] > 0 and rates[narrow] >= rates[wide] for narrow, wide in pairwise(WIDTHS))


def test_the_architectures_are_those_of_the_documentation() -> None:
    nvidia = "70 72 75 80 86 87 89 90 100 101 103 110 120 121"
    assert list(ARCHITECTURES) == [*nvidia.split(), "gfx90a", "gfx942", "gfx950"]


def test_a_slice_of_a_board_has_its_share() -> None:
    whole = find({"name": "NVIDIA B200", "arch": "100", "num_sms": 148, "clock_khz": 1_965_000})
    part = find({"name": "NVIDIA B200 MIG 1g.23gb", "arch": "100", "num_sms": 37, "clock_khz": 1_965_000})
    assert part.flops_per_s[8] == pytest.approx(whole.flops_per_s[8] / 4)


@pytest.mark.parametrize(
    ("device", "missing"),
    [
        ({}, "unknown device: its architecture was not recorded; its memory's clock and width were not recorded"),
        ({**H200, "arch": "999"}, "NVIDIA H200: no peaks are known for sm_999"),
        ({**H200, "clock_khz": 0}, "NVIDIA H200: its multiprocessors and their clock were not recorded"),
        ({**H200, "num_sms": "many"}, "NVIDIA H200: its multiprocessors and their clock were not recorded"),
        ({**H200, "bus_width_bits": None}, "NVIDIA H200: its memory's clock and width were not recorded"),
        (
            {"arch": "gfx1100"},
            "no peaks are known for gfx1100; its memory's clock and width were not recorded",
        ),
    ],
)
def test_what_is_unknown_is_said(device: dict[str, object], missing: str) -> None:
    assert find(device).missing == missing


def test_what_is_known_stays_where_a_part_is_missing() -> None:
    assert find({**H200, "arch": "999"}).bytes_per_s == pytest.approx(4.814e12, rel=1e-3)
    assert find({**H200, "bus_width_bits": None}).flops_per_s[16] == pytest.approx(988e12, rel=1e-3)


@pytest.mark.parametrize(("device", "flops8"), PROTON_FLOPS8.items())
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_max_flops_is_the_value_of_proton(device: tuple[str, str], flops8: float, width: int) -> None:
    assert max_flops(*device, width, 132, 1_980_000) == pytest.approx(flops8 / (width / 8), rel=1e-12)


@pytest.mark.parametrize("arch", sorted(set(ARCHITECTURES) - {arch for _, arch in PROTON_FLOPS8}))
def test_max_flops_knows_the_architectures_that_proton_lacks(arch: str) -> None:
    device = {"name": "unnamed", "arch": arch, "num_sms": 20, "clock_khz": 1_500_000}
    assert max_flops("CUDA", arch, 16, 20, 1_500_000) == pytest.approx(find(device).flops_per_s[16])


def test_max_bps_is_the_value_of_proton() -> None:
    assert max_bps("CUDA", "90", 6144, 2_619_000) == 2 * 6144 * 2_619_000 * 1e3 / 8
    assert [max_bps("HIP", arch, 1, 1) for arch in ("gfx90a", "gfx942", "gfx950")] == [3.2e12, 5.3e12, 8.0e12]


@pytest.mark.parametrize(
    ("name", "arch", "tera_bytes_per_s"),
    [
        ("AMD Instinct MI250X", "gfx90a", 1.6384),  # one of its two dies
        ("AMD Instinct MI300X", "gfx942", 5.3),
        ("AMD Instinct MI325X", "gfx942", 6.0),
        ("", "gfx950", 8.0),
    ],
)
def test_bandwidth_of_amd_s_devices_is_that_of_their_data_sheets(name: str, arch: str, tera_bytes_per_s: float) -> None:
    assert find({"name": name, "arch": arch}).bytes_per_s == tera_bytes_per_s * 1e12


@pytest.mark.parametrize("device", [("CUDA", "61"), ("CUDA", "gfx942"), ("HIP", "90"), ("TPU", "5")])
def test_an_unknown_device_is_an_error_of_value(device: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="Unsupported"):
        max_flops(*device, 16, 1, 1)
    with pytest.raises(UnknownDevice, match="Unsupported"):
        max_bps("HIP", "90", 1, 1)
