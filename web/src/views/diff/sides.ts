// Two sides of one tree: where the boxes of each are, on one scale, so that wider is slower.

import type { Tree } from "../../data/profile";
import { sumUp } from "../../data/tree";

/** A tree with the values of two profiles. */
export interface Sides {
  /** With what ran below, by node. */
  before: Float64Array;
  after: Float64Array;
  /** Children of each node, what takes longest on either side first: the same order on both. */
  children: number[][];
}

export type Side = "before" | "after";

/** A box of one side; pixels. */
export interface Box {
  node: number;
  depth: number;
  x: number;
  width: number;
}

/** What happened to a node. */
export type Fate = "new" | "gone" | "longer" | "shorter" | "same";

const LEAST_WIDTH_PX = 1;

export function sidesOf(tree: Tree, before: Float64Array, after: Float64Array): Sides {
  const sides = { before: sumUp(tree, before), after: sumUp(tree, after), children: [] as number[][] };
  const most = sides.before.map((value, node) => Math.max(value, sides.after[node]));
  for (let node = 0; node < most.length; node++) sides.children.push([]);
  for (let node = 1; node < most.length; node++) {
    if (most[node] > 0) sides.children[tree.parent[node]].push(node);
  }
  for (const children of sides.children) children.sort((one, other) => most[other] - most[one] || one - other);
  return sides;
}

/** The longer side of a node takes the whole width: pixels per unit. */
export function scaleOf(sides: Sides, zoomed: number, width: number): number {
  return width / Math.max(sides.before[zoomed], sides.after[zoomed], Number.MIN_VALUE);
}

/** The boxes of one side: what is zoomed to, all above it, and what is wide enough below. */
export function boxesOf(tree: Tree, sides: Sides, side: Side, zoomed: number, scale: number): Box[] {
  const values = sides[side];
  const path: number[] = [];
  for (let node = zoomed; node >= 0; node = tree.parent[node]) path.push(node);
  const width = values[zoomed] * scale;
  const found = path.map((node, index) => ({ node, depth: path.length - 1 - index, x: 0, width }));
  if (width < LEAST_WIDTH_PX) return [];
  const pending = [found[0]];
  while (pending.length) {
    const above = pending.pop() as Box;
    let x = above.x;
    for (const node of sides.children[above.node]) {
      const box = { node, depth: above.depth + 1, x, width: values[node] * scale };
      x += box.width;
      if (box.width < LEAST_WIDTH_PX) continue;
      found.push(box);
      pending.push(box);
    }
  }
  return found;
}

export function fateOf(before: number, after: number): Fate {
  if (before === after) return "same";
  if (before === 0) return "new";
  if (after === 0) return "gone";
  return after > before ? "longer" : "shorter";
}

/** The change as a share of what was there, -1 to 1: twice as long is 1. */
export function changeShare(before: number, after: number): number {
  if (before === after) return 0;
  return before === 0 ? 1 : Math.min(Math.max((after - before) / before, -1), 1);
}

/** The node that an arrow key leads to; the same one where there is none. */
export function neighbour(tree: Tree, sides: Sides, node: number, key: string): number {
  if (key === "ArrowDown") return sides.children[node][0] ?? node;
  const parent = tree.parent[node];
  if (parent < 0) return node;
  if (key === "ArrowUp") return parent;
  const siblings = sides.children[parent];
  const place = siblings.indexOf(node) + (key === "ArrowRight" ? 1 : -1);
  return siblings[Math.min(Math.max(place, 0), siblings.length - 1)] ?? node;
}
