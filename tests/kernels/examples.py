"""The examples of docs/reference/checkers.md: one planted bug of each checker, and what is said of it.

`python -m tests.kernels.examples` writes them anew.
"""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from pathlib import Path

import bragg.debug
from bragg.debug.faults import KernelFault
from bragg.registry import CHECKERS
from tests.kernels import planted
from tests.kernels.planted import PLANTED

__all__ = ["DOCUMENT", "EXAMPLES", "rewritten"]

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "checkers.md"

EXAMPLES = {
    "out-of-bounds": "mask_one_too_far",
    "data-race": "shift_in_place",
    "missing-barrier": "neighbour_of_what_was_stored",
    "uninitialised-read": "sums_lanes_that_were_not_loaded",
    "masked-lanes": "maximum_of_negative_numbers",
    "unwritten": "grid_without_the_last_tile",
    "broken-promise": "not_contiguous",
    "integer-overflow": "square_of_a_row_number_in_32_bits",
    "division-by-zero": "mean_of_an_empty_group",
    "portability": "and_between_blocks",
    "stale-memory": "writes_a_tensor_without_memory",
    "residency": "barrier_of_more_programs_than_fit",
    "missing-wait": "reads_a_copy_at_once",
    "missing-fence": "stores_without_a_fence",
    "tuned-twice": "adds_while_it_is_tuned",
    "nan-result": "softmax_without_its_maximum",
    "nan-origin": "logarithm_of_zero",
    "uncoalesced": "reads_down_a_column",
    "atomic-order": "gradient_by_float_atomics",
    "order-dependence": "compacts_by_a_counter",
    "launch-dependence": "leaves_out_a_tail",
    "precision": "variance_by_squares",
    "bank-conflict": "product_of_rows_of_bytes",
    "leak": "results_kept_forever",
    "kernel-fault": "lock_that_nobody_releases",
}


def rewritten(text: str) -> str:
    """The document with the examples as they are now: the blocks that begin with `# name of the checker`."""
    blocks = r"```python\n# ([\w-]+)\n.*?```\n\n```\n.*?```\n"
    return re.sub(blocks, lambda found: _example(found[1]), text, flags=re.DOTALL)


def _example(rule: str) -> str:
    name = EXAMPLES[rule]
    case = PLANTED[name]
    function = getattr(getattr(planted, Path(case.file).stem), name)
    lines, first = inspect.getsourcelines(getattr(function, "base_fn", getattr(function, "fn", function)))
    source = [line for line in lines if not line.startswith("@bug")]
    # The name of the checker is the first line.
    shift = first + len(lines) - len(source) - 2
    with bragg.debug.check(add=[rule] if rule in list(CHECKERS) else []) as report, suppress(KernelFault):
        case.launch()
    finding = next(finding for finding in report if finding.rule == rule)
    found = "\n".join(finding.lines()).replace(case.file, "example.py")
    found = re.sub(r"example\.py:(\d+)", lambda place: f"example.py:{int(place[1]) - shift}", found)
    found = re.sub(r"(of line )(\d+)", lambda place: f"{place[1]}{int(place[2]) - shift}", found)
    return f"```python\n# {rule}\n{''.join(source)}```\n\n```\n{found}\n```\n".replace("  # bug", "")


if __name__ == "__main__":
    DOCUMENT.write_text(rewritten(DOCUMENT.read_text()))
