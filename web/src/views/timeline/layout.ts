// Where lanes stand below each other, px.

import type { Group, Lane } from "./lanes";

export const ROW_PX = 18;
export const GROUP_PX = 22;
const LANE_GAP_PX = 7;
const LABEL_PX = 15;

/** A lane, or the head of a group. */
export interface Band {
  y: number;
  height: number;
  /** Row of the groups. */
  group: number;
  /** null: the head of the group. */
  lane: Lane | null;
  /** Where the lane's first row begins. */
  rows_y: number;
}

export interface Layout {
  bands: Band[];
  height: number;
}

/** Bands from the top; of closed groups the head alone. Where labels stand above lanes they need a line of their own. */
export function layoutOf(groups: Group[], closed: Set<number>, labelsAbove: boolean): Layout {
  const bands: Band[] = [];
  let y = 0;
  for (const [index, group] of groups.entries()) {
    bands.push({ y, height: GROUP_PX, group: index, lane: null, rows_y: y });
    y += GROUP_PX;
    if (closed.has(index)) continue;
    for (const lane of group.lanes) {
      const rows_y = y + (labelsAbove ? LABEL_PX : 0);
      const height = rows_y - y + lane.rows.length * ROW_PX + LANE_GAP_PX;
      bands.push({ y, height, group: index, lane, rows_y });
      y += height;
    }
  }
  return { bands, height: y };
}

/** The band at a height, and the depth in its lane; null: none is there. */
export function bandAt(layout: Layout, y: number): { band: Band; depth: number } | null {
  const band = layout.bands.find((one) => y >= one.y && y < one.y + one.height);
  return band === undefined ? null : { band, depth: Math.floor((y - band.rows_y) / ROW_PX) };
}
