"""Records the raw activity buffers of a small program, for tests that replay them where there is no GPU.

The core writes each buffer that CUPTI delivers to the directory named by BRAGG_DUMP_BUFFERS. Kernel names are those of
PyTorch; addresses of names are replaced by offsets, and nothing else in a record names a person or a machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "buffers.py"


def main() -> None:
    """Run the program under bragg with the dump switched on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where the buffers go")
    directory = parser.parse_args().directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profiles:
        output = f"{profiles}/run.bragg"
        command = [sys.executable, "-m", "bragg", "run", "--backend", "cuda", "-o", output, str(PROGRAM)]
        subprocess.run(command, check=True, env={**os.environ, "BRAGG_DUMP_BUFFERS": str(directory)})
    for path in sorted(directory.iterdir()):
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
