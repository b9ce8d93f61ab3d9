"""Machine code as text, kept beside Triton's cache: nvdisasm takes 0.3 s for the smallest kernel."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from bragg.code.sass.disassembler import Listing, disassemble

__all__ = ["kept_listings"]

# A machine that runs other tests may need longer than a user should wait.
_WITHIN_S = 120.0


def kept_listings(tool: str, cubins: Sequence[bytes], _limit_s: float) -> list[Listing | str]:
    """As `disassemble_all`, but each cubin is disassembled once by the same nvdisasm."""
    return [_listing(tool, cubin) for cubin in cubins]


def _listing(tool: str, cubin: bytes) -> Listing:
    name = hashlib.sha256(_checksum(tool) + cubin).hexdigest()
    kept = Path(os.environ["TRITON_CACHE_DIR"], "listings", name)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(disassemble(tool, cubin, _WITHIN_S)))
        unfinished.replace(kept)  # tests in other processes may read it at any time
    listing: Listing = pickle.loads(kept.read_bytes())
    return listing


@lru_cache
def _checksum(tool: str) -> bytes:
    return hashlib.sha256(Path(tool).read_bytes()).digest()
