"""How kernels were launched: one row for each configuration that occurred."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.model.table import Int32Array, Int64Array, Table


@dataclass(frozen=True, eq=False)
class KernelTable(Table):
    """Launch configurations, as the device reported them.

    Attributes:
        frame: The kernel, a row of the frame table.
        registers: Registers of one thread.
        static_shared_bytes: Shared memory of one block, fixed at compile time.
        dynamic_shared_bytes: Shared memory of one block, asked for at launch.
        local_bytes_per_thread: Spills and stack.
        grid_x: Blocks along x; `grid_y` and `grid_z` along y and z.
        block_x: Threads of a block along x; `block_y` and `block_z` along y and z.
        cluster_x: Blocks of a cluster along x, 0 without clusters; `cluster_y` and `cluster_z` along y and z.
        count: Launches.
    """

    frame: Int32Array
    registers: Int64Array
    static_shared_bytes: Int64Array
    dynamic_shared_bytes: Int64Array
    local_bytes_per_thread: Int64Array
    grid_x: Int64Array
    grid_y: Int64Array
    grid_z: Int64Array
    block_x: Int64Array
    block_y: Int64Array
    block_z: Int64Array
    cluster_x: Int64Array
    cluster_y: Int64Array
    cluster_z: Int64Array
    count: Int64Array

    def combined(self) -> KernelTable:
        """Equal configurations as one row, their counts added; ordered by configuration."""
        keys = np.stack([getattr(self, name) for name in self.columns() if name != "count"], axis=1)
        unique, row = np.unique(keys.astype(np.int64), axis=0, return_inverse=True)
        count = np.zeros(len(unique), np.int64)
        np.add.at(count, row.reshape(-1), self.count)
        names = [name for name in self.columns() if name != "count"]
        return KernelTable(**dict(zip(names, unique.T, strict=True)), count=count)
