"""What tests of laws share."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

# What reading any of the files may take beyond what the process already has.
MEMORY_BYTES = 512 << 20


@pytest.fixture
def bounded_memory() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
