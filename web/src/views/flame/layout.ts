// Which boxes are drawn, and where.

import type { Forest } from "./forest";

/** A box on the picture; pixels. */
export interface Box {
  /** -1: stands for `more` rows too narrow to be drawn. */
  row: number;
  depth: number;
  x: number;
  width: number;
  more: number;
}

// What is narrower is drawn together with its smaller siblings.
const LEAST_WIDTH_PX = 1;

/** The boxes of a picture in which one row takes the whole width: it, all above it, and what is wide enough below. */
export function boxes(forest: Forest, zoomed: number, width: number): Box[] {
  const found: Box[] = [];
  for (let row = zoomed; row >= 0; row = forest.parent[row]) {
    found.push({ row, depth: forest.depth[row], x: 0, width, more: 0 });
  }
  const scale = width / forest.value[zoomed];
  const pending: Box[] = [found[0]];
  while (pending.length) {
    for (const box of childBoxes(forest, pending.pop() as Box, scale)) {
      found.push(box);
      if (box.row >= 0) pending.push(box);
    }
  }
  return found;
}

function childBoxes(forest: Forest, above: Box, scale: number): Box[] {
  const found: Box[] = [];
  const first = forest.first[above.row];
  const end = first + forest.count[above.row];
  let x = above.x;
  for (let row = first; row < end; row++) {
    const width = forest.value[row] * scale;
    if (width < LEAST_WIDTH_PX) {
      const rest = restWidth(forest, row, end, scale);
      if (rest >= LEAST_WIDTH_PX) found.push({ row: -1, depth: above.depth + 1, x, width: rest, more: end - row });
      break;
    }
    found.push({ row, depth: above.depth + 1, x, width, more: 0 });
    x += width;
  }
  return found;
}

function restWidth(forest: Forest, from: number, end: number, scale: number): number {
  let value = 0;
  for (let row = from; row < end; row++) value += forest.value[row];
  return value * scale;
}

/** Whether one row is another, or above it. */
export function isAtOrAbove(forest: Forest, above: number, row: number): boolean {
  let at = row;
  while (at > above) at = forest.parent[at];
  return at === above;
}

/** The row that an arrow key leads to; the same one where there is none. */
export function neighbour(forest: Forest, row: number, key: string): number {
  const parent = forest.parent[row];
  if (key === "ArrowDown") return forest.count[row] ? forest.first[row] : row;
  if (parent < 0) return row;
  if (key === "ArrowUp") return parent;
  const last = forest.first[parent] + forest.count[parent] - 1;
  if (key === "ArrowRight") return Math.min(row + 1, last);
  return Math.max(row - 1, forest.first[parent]);
}
