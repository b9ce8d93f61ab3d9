"""What rules look at: facts of a profile, and what the program gains when a part of it goes away."""

from __future__ import annotations

from bragg.analyze.causes.facts import Facts
from bragg.model import FrameKind, Gain
from bragg.model.table import BoolArray

# A GPU that is this busy decides the wall time: what it saves, the program saves.
_BUSY = 0.9
# One that is less busy waits for the host more than it works: what it saves hides behind the host.
_IDLE = 0.5


class Evidence(Facts):
    """Facts of a profile, and gains in its wall time."""

    def gpu_gain(
        self, nodes: BoolArray, saved: float = 1.0, *, saving_is_measured: bool = False, with_launches: bool = False
    ) -> Gain | None:
        """What the program gains when work of a GPU gets shorter; None: no timeline tells, and it is not clear.

        Args:
            nodes: Whose own GPU time: [n_nodes].
            saved: Share of that time that goes away, 0 to 1.
            saving_is_measured: Whether samples or clocks tell `saved`.
            with_launches: Whether their launches go away with them.
        """
        if not self.wall_ns:
            return None
        found = self._gain_of_bounding(nodes, saved, with_launches=with_launches)
        if found is None:
            return None
        wall_ns, limit = found
        most_ns = self.wall_ns * (1 - self.bounding.others_busy)
        if wall_ns > most_ns:
            wall_ns, limit = most_ns, "another GPU"
        elif float(self.bounding_ns[nodes].sum()) < float(self.gpu_ns[nodes].sum()) * _IDLE:
            limit = "the busiest GPU"
        return self.gain(wall_ns, limit, saving_is_measured=saving_is_measured)

    def _gain_of_bounding(self, nodes: BoolArray, saved: float, *, with_launches: bool) -> tuple[float, str] | None:
        """Wall time that work of the bounding GPUs gains, and what limits it; None: not clear."""
        total_ns = float(self.bounding_ns[nodes].sum()) * saved / self.bounding.count
        most_ns = self.wall_ns - self.host_floor_ns
        if self.critical_ns is not None:
            wall_ns = min(float(self.critical_ns[nodes].sum()) * saved, most_ns)
            return wall_ns, "the host" if wall_ns < total_ns * _IDLE or wall_ns == most_ns else ""
        if self._decides:
            return min(total_ns, most_ns), "the host" if total_ns > most_ns else ""
        # While the host waits for the GPU, nobody launches: what the GPU saves then, the program saves.
        waited_ns = float(self.host_ns[self.host.waiting].sum()) if self.n_devices == 1 else 0.0
        if self.busy is not None and waited_ns >= total_ns:
            return total_ns, ""
        if self.is_jitted and self.busy is not None and self.idle_ns is not None:
            launches, all_launches = float(self.gpu_count[nodes].sum()), float(self.gpu_count.sum())
            left = 1 - saved * launches / max(all_launches, 1) if with_launches else 1.0
            found_ns = max(min(total_ns, most_ns, self.wall_ns - self._dispatching_ns * left), 0.0)
            return found_ns, "the host" if found_ns < total_ns else ""
        if self.busy is not None and self.busy < _IDLE:
            return 0.0, "the host"
        return None

    @property
    def _dispatching_ns(self) -> float:
        """Part of `wall_ns` in which the host works at least: calls of jitted functions do not wait for their results.

        What it works beside them shows only where a GPU waits for it.
        """
        works = (self.profile.tree.kind == FrameKind.OPERATOR) & ~self.host.waiting & ~self.compiling
        idle_ns = 0.0 if self.idle_ns is None else float(self.idle_ns.sum())
        return max(float(self.host_ns[works].sum()), idle_ns)

    @property
    def _decides(self) -> bool:
        """Whether the GPU decides the wall time: it works, or what it does next is launched already."""
        if self.busy is None or self.busy < _IDLE or self.idle_ns is None:
            return self.busy is not None and self.busy >= _BUSY
        return max(self.busy, 1 - float(self.idle_ns.sum()) / self.wall_ns) >= _BUSY

    def gain(self, wall_ns: float, limit: str = "", *, saving_is_measured: bool = False) -> Gain:
        """A gain of `part`; its wall time is known."""
        return Gain(
            min(wall_ns, self.wall_ns),
            self.wall_ns,
            limit,
            waits_are_measured=self.has_timeline,
            saving_is_measured=saving_is_measured,
        )

    def host_gain(self, nodes: BoolArray, saved: float = 1.0) -> Gain | None:
        """What the program gains when code of the host gets shorter: time in which a GPU waited for it.

        Args:
            nodes: Whose own host code: [n_nodes].
            saved: Share of its time that goes away, 0 to 1.
        """
        if self.idle_ns is None or not self.wall_ns:
            return None
        limit = "the GPU" if self.busy is not None and self.busy >= _BUSY else ""
        return self.gain(float(self.idle_ns[nodes].sum()) * saved, limit)
