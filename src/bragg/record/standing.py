"""Where a rank stands, as its process tells the one that started it: a small file, written anew again and again."""

from __future__ import annotations

# <pid>.standing: a JSON object
#   pid, rank, stack: ["train.py:42@step", ...] of the main thread, innermost first
#   groups: {"group 0 of 8": {"entered": 17, "last": "allreduce", "ago_s": 31.5}}
SUFFIX = ".standing"
# So often a rank reports within the time after which a job hangs.
REPORTS_IN_A_WATCH = 5
