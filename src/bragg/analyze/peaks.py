"""Rates of the hardware, as its vendors publish them: the data behind `bragg.analyze.specs`.

All rates are dense (no structured sparsity). Tensor rates below 64 bits accumulate in 32 bits where the vendor
publishes that figure; a rate of 8 bits is FP8 where the chip has it, else INT8, one of 4 bits FP4 or INT4, one of
32 bits on tensor cores TF32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Architecture:
    """Floating-point operations that one multiprocessor (AMD: compute unit) completes in one clock.

    Attributes:
        tensor: By width in bits, matrix units.
        cores: By width in bits, ordinary arithmetic; a multiply-add counts as two.
        source: Document that the figures follow from.
        highest_clock_khz: Reported clocks above it are not sustained; None where reported clocks are.
        halved_on_geforce: Widths whose tensor rate with 32-bit accumulation is half on GeForce boards.
    """

    tensor: Mapping[int, float]
    cores: Mapping[int, float]
    source: str
    highest_clock_khz: int | None = None
    halved_on_geforce: tuple[int, ...] = field(default=())


@dataclass(frozen=True)
class Board:
    """A product whose rates do not follow from its architecture, its multiprocessors and its clock.

    Attributes:
        name: Regular expression for the name that the driver reports.
        num_sms: Multiprocessors of the whole product; a slice of it (MIG) has its share.
        flops_per_s: By width in bits; widths that are not listed follow from the architecture.
        source: Document of the figures.
    """

    name: str
    num_sms: int
    flops_per_s: Mapping[int, float]
    source: str


_TERA = 1e12

# Hopper's data sheets quote tensor rates at a lower clock than the boost clock that the driver reports: H100 PCIe has
# 114 SMs, reports 1,755 MHz and reaches 1,513 Tflop/s of FP8, which is 8,192 flops a clock at 1,620 MHz.
_HOPPER_FP8 = 1513 * _TERA / (114 * 1755e6)
# GeForce RTX 4090 (128 SMs, 2,520 MHz): 660.6 Tflop/s of FP8 and 330.3 with 32-bit accumulation; other boards 1:1.
_ADA_FP8 = 2 * 330.3 * _TERA / (128 * 2520e6)
_THOR = Architecture(
    {4: 32768, 8: 16384, 16: 8192, 32: 4096},
    {32: 256, 64: 4},
    "Jetson T5000 data sheet (20 SMs, 1.57 GHz: 1,035 Tflop/s of FP4, 8.1 of FP32)",
)

ARCHITECTURES: Mapping[str, Architecture] = {
    "70": Architecture({16: 1024}, {32: 128, 64: 64}, "Tesla V100 architecture whitepaper, table 1"),
    "72": Architecture(
        {8: 2048, 16: 1024},
        {32: 128, 64: 64},
        "Jetson AGX Xavier data sheet (8 SMs, 1.377 GHz: 22 TOPS of INT8, 11 Tflop/s of FP16)",
    ),
    "75": Architecture(
        {4: 4096, 8: 2048, 16: 1024},
        {32: 128, 64: 4},
        "Turing architecture whitepaper, appendix A (T4: 65 Tflop/s of FP16)",
        halved_on_geforce=(16,),
    ),
    "80": Architecture(
        {4: 8192, 8: 4096, 16: 2048, 32: 1024, 64: 128},
        {32: 128, 64: 64},
        "A100 architecture whitepaper, table 1 (A100: 312 Tflop/s of FP16)",
    ),
    "86": Architecture(
        {4: 4096, 8: 2048, 16: 1024, 32: 512},
        {32: 256, 64: 4},
        "GA102 architecture whitepaper; data sheets of A10 (125 Tflop/s of FP16) and A40 (149.7)",
        halved_on_geforce=(16, 32),
    ),
    "87": Architecture(
        {4: 8192, 8: 4096, 16: 2048, 32: 1024},
        {32: 256, 64: 4},
        "Jetson AGX Orin technical brief (16 SMs, 1.3 GHz: 85 TOPS of INT8, 5.3 Tflop/s of FP32)",
    ),
    "89": Architecture(
        {4: 2 * _ADA_FP8, 8: _ADA_FP8, 16: _ADA_FP8 / 2, 32: _ADA_FP8 / 4},
        {32: 256, 64: 4},
        "Ada GPU architecture whitepaper, appendix A; data sheets of L4 and L40S (242 and 733 Tflop/s of FP8)",
        highest_clock_khz=2_520_000,
        halved_on_geforce=(8, 16, 32),
    ),
    "90": Architecture(
        {8: _HOPPER_FP8, 16: _HOPPER_FP8 / 2, 32: _HOPPER_FP8 / 4, 64: 256},
        {32: 256, 64: 128},
        "H100 data sheet (PCIe: 1,513 Tflop/s of FP8; SXM: 1,979)",
    ),
    "100": Architecture(
        {4: 32768, 8: 16384, 16: 8192, 32: 4096, 64: 128},
        {32: 256, 64: 128},
        "Blackwell architecture technical brief (B200: 4.5 Pflop/s of FP8 at 1.85 GHz)",
    ),
    "101": _THOR,
    "103": Architecture(
        {4: 49152, 8: 16384, 16: 8192, 32: 4096},
        {32: 256, 64: 4},
        "Blackwell Ultra data sheet (HGX B300: 13.5 Pflop/s of FP4, 1.25 Tflop/s of FP64)",
    ),
    "110": _THOR,
    "120": Architecture(
        {4: 4096, 8: 2048, 16: 1024, 32: 512},
        {32: 256, 64: 4},
        "RTX Blackwell GPU architecture whitepaper, appendix A (RTX 5090: 419 Tflop/s of FP8, 1,676 of FP4)",
        halved_on_geforce=(8, 16, 32),
    ),
    "121": Architecture(
        {4: 4096, 8: 2048, 16: 1024, 32: 512},
        {32: 256, 64: 4},
        "DGX Spark data sheet (GB10: 1 Pflop/s of sparse FP4, 31 Tflop/s of FP32)",
    ),
    "gfx90a": Architecture(
        {8: 1024, 16: 1024, 32: 256, 64: 256},
        {32: 256, 64: 128},
        "CDNA 2 whitepaper, table of peak rates (MI250X: 383 Tflop/s of FP16)",
    ),
    "gfx942": Architecture(
        {8: 4096, 16: 2048, 32: 1024, 64: 256},
        {32: 256, 64: 128},
        "CDNA 3 whitepaper, table 1 (MI300X: 2,615 Tflop/s of FP8)",
    ),
    "gfx950": Architecture(
        {4: 16384, 8: 8192, 16: 4096, 32: 256, 64: 128},
        {32: 256, 64: 128},
        "CDNA 4 whitepaper, table 1 (MI355X: 5.0 Pflop/s of FP8)",
    ),
}

# Data sheets of MI210, MI300X and MI350X; a device of MI250X is one of its two dies, with the memory of an MI210. The
# memory clock that the driver reports is not that of the interface.
AMD_BYTES_PER_S: Mapping[str, float] = {"gfx90a": 1.6384e12, "gfx942": 5.3e12, "gfx950": 8.0e12}
# Products of these architectures that differ, by what their name contains: data sheet of MI325X.
AMD_BOARD_BYTES_PER_S: Mapping[str, float] = {"MI325X": 6.0e12}

# The first match counts.
BOARDS: tuple[Board, ...] = (
    Board(
        r"H[12]00 NVL",
        132,
        {8: 1671 * _TERA, 16: 835.5 * _TERA, 32: 417.5 * _TERA, 64: 60 * _TERA},
        "H100 NVL and H200 NVL data sheets",
    ),
    Board(r"\bH20\b", 78, {8: 296 * _TERA, 16: 148 * _TERA, 32: 74 * _TERA, 64: 1 * _TERA}, "H20 data sheet"),
    Board(r"\bH800\b", 132, {64: 1 * _TERA}, "H800 data sheet"),
    Board(
        r"\bGB200\b",
        152,
        {4: 10_000 * _TERA, 8: 5_000 * _TERA, 16: 2_500 * _TERA, 32: 1_250 * _TERA, 64: 40 * _TERA},
        "Blackwell data sheet, one GPU of GB200 NVL72",
    ),
    Board(
        r"\bB200\b",
        148,
        {4: 9_000 * _TERA, 8: 4_500 * _TERA, 16: 2_250 * _TERA, 32: 1_125 * _TERA, 64: 37 * _TERA},
        "Blackwell data sheet, one GPU of HGX B200",
    ),
    Board(
        r"\bGB300\b",
        152,
        {4: 15_000 * _TERA, 8: 5_000 * _TERA, 16: 2_500 * _TERA, 32: 1_250 * _TERA},
        "GB300 NVL72 data sheet, one of 72",
    ),
    Board(
        r"\bB300\b",
        148,
        {4: 13_500 * _TERA, 8: 4_500 * _TERA, 16: 2_250 * _TERA, 32: 1_125 * _TERA, 64: 1.25 * _TERA},
        "HGX B300 data sheet, one of 8",
    ),
    Board(r"\bL40\b", 142, {4: 724 * _TERA, 8: 362 * _TERA, 16: 181.05 * _TERA, 32: 90.5 * _TERA}, "L40 data sheet"),
    Board(r"\bL20\b", 92, {8: 239 * _TERA, 16: 119.5 * _TERA, 32: 59.8 * _TERA}, "L20 data sheet"),
    Board(r"\bA10G\b", 80, {4: 280 * _TERA, 8: 140 * _TERA, 16: 70 * _TERA, 32: 35 * _TERA}, "A10G data sheet"),
)

# Bytes that NVLink of a GPU carries in a second in one direction, by what the driver calls boards that always have it:
# half of what their data sheets call its bandwidth. The first match counts.
NVLINKS: tuple[tuple[str, float], ...] = (
    (r"H100 \d+GB HBM3|\bH200$|\bH20$", 450e9),
    (r"\bH800$", 200e9),
    (r"\bG?B[23]00\b", 900e9),
    (r"A100-SXM", 300e9),
    (r"V100-SXM", 150e9),
)
