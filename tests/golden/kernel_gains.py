"""How many times as fast rules estimate that kernels are without a defect, beside how fast their repaired twins were.

python -m tests.golden.kernel_gains    prints the table of docs/reference/rules.md
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bragg import formats
from bragg.analyze.causes.evidence import Evidence
from bragg.registry import RULES

__all__ = ["KernelGain", "kernel_gains", "table"]

RECORDINGS = Path(__file__).parent / "recordings"
# The rule that names the defect, and a launch of the repaired kernel as it was recorded, in us.
TWINS = {
    "pairs/h100-every_second": ("uncoalesced-access", 121.6),
    "pairs/h100-one_wave": ("few-blocks", 25.3),
    "pairs/h100-short_rows": ("small-blocks", 64.8),
    "pairs/h100-small_blocks": ("small-blocks", 183.8),
    "texts/h200-catalog_mlp": ("small-tiles", 582.5),
    "texts/h200-fingerprint_match": ("dot-without-tensor-cores", 365.9),
    "texts/h200-gate_softmax": ("idle-threads", 430.7),
    "texts/h200-hydrophone_levels": ("few-blocks", 139.3),
    "texts/h200-photon_likelihood": ("atomics-on-one-address", 67.1),
    "texts/h200-spectrogram_norm": ("uncoalesced-access", 423.9),
    "texts/h200-story_attention": ("masked-turns", 1035.6),
    "texts/h200-xray_exposure": ("atomics-on-one-address", 76.9),
    "texts/h100-tanimoto_screen": ("small-tiles", 516.5),
    "unseen/h100-basket_pool": ("masked-turns", 27.1),
    "unseen/h100-bias_gelu_ffn": ("uncoalesced-access", 55.7),
    "unseen/h100-causal_flash": ("masked-turns", 513.5),
    "unseen/h100-cell_offsets": ("single-loads", 71.0),
    "unseen/h100-depthwise_flat": ("narrow-access", 115.3),
    "unseen/h100-equal_hist": ("atomics-on-one-address", 200.4),
    "unseen/h100-gelu_linear": ("register-spills", 234.2),
    "unseen/h100-gelu_tanh": ("slow-arithmetic", 132.7),
    "unseen/h100-heat_plate": ("idle-threads", 133.4),
    "unseen/h100-int8_linear": ("widened-product", 390.1),
    "unseen/h100-nhwc_batchnorm": ("uncoalesced-access", 207.0),
    "unseen/h100-rms_backward": ("atomics-on-one-address", 168.5),
    "unseen/h100-scaled_softmax": ("idle-threads", 260.5),
    "unseen/h100-tone_histogram": ("atomics-on-one-address", 20.8),
    "unseen/h100-volume_groupnorm": ("few-blocks", 189.4),
}


@dataclass(frozen=True)
class KernelGain:
    """One kernel.

    Attributes:
        program: That launches it.
        rule: The rule that names the defect.
        before_us: A launch of it.
        after_us: A launch of the twin.
        estimated: How many times as fast it is said to become.
    """

    program: str
    rule: str
    before_us: float
    after_us: float
    estimated: float

    @property
    def measured(self) -> float:
        """How many times as fast the twin is."""
        return self.before_us / self.after_us

    @property
    def is_near(self) -> bool:
        """Whether both are within a factor of two."""
        return max(self.measured, self.estimated) <= 2 * min(self.measured, self.estimated)


def kernel_gains() -> list[KernelGain]:
    """Of all kernels whose twins were recorded, by rule."""
    found = [_gain(name, rule, after_us) for name, (rule, after_us) in TWINS.items()]
    return sorted(found, key=lambda each: (each.rule, each.program))


def _gain(name: str, rule: str, after_us: float) -> KernelGain:
    evidence = Evidence(formats.load(RECORDINGS / f"{name}_slow.bragg"))
    judge = RULES[rule].find.keywords["judge"]  # type: ignore[attr-defined]
    told = ((kernel, kernel.compiled and judge(kernel, kernel.compiled)) for kernel in evidence.hot_kernels)
    kernel, defect = next((kernel, defect) for kernel, defect in told if defect)
    program = name.partition("-")[2]
    return KernelGain(program, rule, kernel.mean_ns / 1e3, after_us, 1 / (1 - defect.saved))


def table(gains: list[KernelGain]) -> str:
    """Rows of Markdown, and how many are near."""
    rows = [
        f"| {each.rule} | {each.program} | {each.before_us:,.0f} | {each.after_us:,.0f} | {each.estimated:.1f} | "
        f"{each.measured:.1f} | {'yes' if each.is_near else 'no'} |"
        for each in gains
    ]
    head = (
        "| rule | kernel of | us | us of the twin | times as fast, estimated | measured | within a factor of two |\n"
        "|---|---|---|---|---|---|---|"
    )
    near = sum(each.is_near for each in gains)
    return "\n".join([head, *rows, "", f"{near} of {len(gains)} are within a factor of two."])


if __name__ == "__main__":
    print(table(kernel_gains()))
