"""What to do where Triton found no GPU, said behind the error that ended the program."""

from __future__ import annotations

from bragg.record.inside.notes import note

_ERROR = "0 active drivers"


def explain_missing_driver(error: object) -> None:
    """Say how kernels run without a GPU, if Triton's missing driver is what an error tells."""
    if isinstance(error, RuntimeError) and str(error).startswith(_ERROR):
        note(
            "Triton found no GPU. Its kernels run in an interpreter under `bragg run SCRIPT`, "
            "or with `import bragg.debug` inside of `with bragg.debug.interpret():`"
        )
