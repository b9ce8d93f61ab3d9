"""What the views compute with: the formulas of the analysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bragg.analyze.derived import Derived
    from bragg.model import Profile
    from bragg.views.terminal.formulas import Formulas


class _Derived:
    """The analysis is imported when a name is none that was recorded."""

    def knows(self, name: str) -> bool:
        from bragg.analyze.derived import is_derived

        return is_derived(name)

    def names(self, profile: Profile) -> list[str]:
        from bragg.analyze.derived import list_available

        return list_available(profile)

    def compute(self, profile: Profile, name: str) -> Derived:
        from bragg.analyze.derived import evaluate

        return evaluate(profile, name)


DERIVED: Formulas = _Derived()


def prepared(profile: Profile, names: Sequence[str]) -> Profile:
    """The profile with what computed metrics need to know before nodes are put together."""
    wanted = {name.lower().partition("(")[0].strip() for name in names}
    if wanted.isdisjoint(("util", "gpu_wait")):
        return profile
    from bragg.analyze.derived import with_host_wait, with_roof_time

    profile = with_roof_time(profile) if "util" in wanted else profile
    return with_host_wait(profile) if "gpu_wait" in wanted else profile
