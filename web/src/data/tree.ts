// Sums and walks over a call tree: pure functions over its columns.

import { FrameKind, type ProfileData, type Tree } from "./profile";

/** Each node's own value and those of all its descendants; no value counts as none. */
export function sumUp(tree: Tree, own: Float64Array): Float64Array {
  const total = own.map((value) => (Number.isNaN(value) ? 0 : value));
  for (let node = total.length - 1; node > 0; node--) total[tree.parent[node]] += total[node];
  return total;
}

/** The nodes from the root to a node, both included. */
export function pathOf(tree: Tree, node: number): number[] {
  const path: number[] = [];
  for (let above = node; above >= 0; above = tree.parent[above]) path.push(above);
  return path.reverse();
}

/** Where a frame is written: `train.py:12`; empty when unknown. */
export function placeOf(data: ProfileData, frame: number): string {
  const file = data.frames.file[frame];
  if (!file) return "";
  const line = data.frames.line[frame];
  const name = file.slice(file.lastIndexOf("/") + 1);
  return line ? `${name}:${line}` : name;
}

/** What a node is called. */
export function labelOf(data: ProfileData, node: number): string {
  const frame = data.tree.frame[node];
  return data.frames.kind[frame] === FrameKind.Root ? "total" : data.frames.label[frame];
}
