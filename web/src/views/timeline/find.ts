// Slices whose names hold a text.

import type { ProfileData } from "../../data/profile";
import { tester } from "../../ui/search";
import type { Group, Row } from "./lanes";

export interface Found {
  text: string;
  /** 1 for each frame whose name matches. */
  frames: Uint8Array;
  /** Matching slices before each of a row: one entry more than slices. */
  hits: Map<Row, Int32Array>;
  /** Matching slices by start. */
  slices: Int32Array;
  time_ns: number;
}

/** Everything whose name or label passes the test of `tester`; null: nothing is searched. */
export function find(data: ProfileData, groups: Group[], text: string): Found | null {
  if (text.trim() === "") return null;
  const matches = tester(text.trim());
  const { frames, slices, tree } = data;
  const matching = Uint8Array.from(frames.name, (name, frame) =>
    matches(name) || matches(frames.label[frame]) ? 1 : 0,
  );
  const hits = new Map<Row, Int32Array>();
  const found: number[] = [];
  let time_ns = 0;
  for (const row of rowsOf(groups)) {
    const before = new Int32Array(row.slices.length + 1);
    for (let index = 0; index < row.slices.length; index += 1) {
      const slice = row.slices[index];
      const isHit = matching[tree.frame[slices.node[slice]]];
      before[index + 1] = before[index] + isHit;
      if (isHit) {
        found.push(slice);
        time_ns += slices.duration[slice];
      }
    }
    hits.set(row, before);
  }
  const ordered = Int32Array.from(found).sort((a, b) => slices.start[a] - slices.start[b]);
  return { text, frames: matching, hits, slices: ordered, time_ns };
}

export function* rowsOf(groups: Group[]): Generator<Row> {
  for (const group of groups) for (const lane of group.lanes) yield* lane.rows;
}
