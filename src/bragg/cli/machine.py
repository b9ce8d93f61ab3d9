"""Facts about this machine, read from files: no device is touched."""

from __future__ import annotations

import re
from pathlib import Path

_DRIVER = Path("/proc/driver/nvidia")


def nvidia_gpu_names(driver: Path = _DRIVER) -> list[str]:
    """Models of the NVIDIA GPUs, in bus order; empty where the driver does not say."""
    texts = [_read(path) for path in sorted(driver.glob("gpus/*/information"))]
    return [match[1].strip() for text in texts if (match := re.search(r"^Model:(.*)$", text, re.MULTILINE))]


def nvidia_driver_version(driver: Path = _DRIVER) -> str:
    """Version of the NVIDIA driver; empty where there is none."""
    match = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", _read(driver / "version"))
    return match[1] if match else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
