import type { ProfileData } from "../../data/profile";

export interface HotRow {
  /** The first frame of this kind and name. */
  frame: number;
  /** The node with most of it. */
  node: number;
  value: number;
  /** Of the total, 0 to 1. */
  share: number;
}

/** What took most, wherever it was called from: own values by kind and name, the largest first. */
export function hotList(data: ProfileData, metric: string, length: number): HotRow[] {
  const { tree, frames } = data;
  const own = data.metrics[metric].own;
  const found = new Map<string, HotRow>();
  const most = new Map<HotRow, number>();
  let total = 0;
  for (let node = 0; node < own.length; node++) {
    if (!(own[node] > 0)) continue;
    const frame = tree.frame[node];
    const key = `${frames.kind[frame]} ${frames.name[frame]}`;
    const row = found.get(key) ?? { frame, node, value: 0, share: 0 };
    found.set(key, row);
    row.value += own[node];
    total += own[node];
    if (own[node] > (most.get(row) ?? 0)) {
      most.set(row, own[node]);
      row.node = node;
    }
  }
  const rows = [...found.values()].sort((one, other) => other.value - one.value).slice(0, length);
  for (const row of rows) row.share = row.value / total;
  return rows;
}
