// A call tree as a flame graph draws it: equal siblings as one row, the largest first.

import { FrameKind, type ProfileData } from "../../data/profile";

export type Direction = "down" | "up";

/**
 * Rows of a flame graph. Row 0 is the whole; parents precede children, and the children of a row stand side by side,
 * the largest first.
 */
export interface Forest {
  parent: Int32Array;
  depth: Int32Array;
  /** A row of the frame table, or from `frames.kind.length` on a library. */
  key: Int32Array;
  /** With what is below. */
  value: Float64Array;
  /** Left end as a share of the whole, 0 to 1. */
  start: Float64Array;
  /** Children of row r are the rows from first[r] up to first[r] + count[r]. */
  first: Int32Array;
  count: Int32Array;
  /** A node of the profile that the row stands for; the first of several. */
  node: Int32Array;
  /** Frames that a row of a library stands for; 0 elsewhere. */
  folded: Int32Array;
  /** The row of each node of the profile; -1: it has none. */
  rowOfNode: Int32Array;
}

/** Rows before they are arranged; parents precede children. */
interface Rows {
  parent: number[];
  key: number[];
  value: number[];
  node: number[];
  folded: number[];
}

// Callers of less than this share of the whole are not followed: nobody could point at them.
const LEAST_SHARE = 1e-5;
// Python's own library and the recorder are part of excursions into others, so they name only those without another.
const COMMON = ["stdlib", "bragg"];

/** From the root to the leaves: who called what. */
export function topDown(data: ProfileData, own: Float64Array, foldsLibraries: boolean): Forest {
  const { rows, rowOfNode } = mergedRows(data, own, foldsLibraries);
  addUp(rows);
  return arrange(rows, rowOfNode);
}

/** From what took the time to its callers. */
export function bottomUp(data: ProfileData, own: Float64Array, foldsLibraries: boolean): Forest {
  const { rows: callers, rowOfNode } = mergedRows(data, own, foldsLibraries);
  const rows: Rows = { parent: [-1], key: [data.tree.frame[0]], value: [0], node: [0], folded: [0] };
  const leafRow = new Int32Array(callers.parent.length).fill(-1);
  const leaves = callers.value.flatMap((value, row) => (value > 0 ? [row] : []));
  let level = leaves.map((row) => ({ leaf: row, above: row, into: 0, value: callers.value[row] }));
  for (const { value } of level) rows.value[0] += value;
  const least = rows.value[0] * LEAST_SHARE;
  while (level.length) {
    const found = new Map<number, number>();
    const isFirst = rows.parent.length === 1;
    for (const path of level) {
      path.into = childRow(rows, found, path.into, callers.key[path.above], callers.node[path.above]);
      rows.value[path.into] += path.value;
      rows.folded[path.into] = callers.folded[path.above];
      if (isFirst) leafRow[path.leaf] = path.into;
      path.above = callers.parent[path.above];
    }
    level = level.filter((path) => path.above > 0 && rows.value[path.into] >= least);
  }
  return arrange(
    rows,
    rowOfNode.map((row) => (row < 0 ? -1 : leafRow[row])),
  );
}

/** Own values by row, where equal siblings and the frames of an excursion into a library are one row. */
function mergedRows(data: ProfileData, own: Float64Array, foldsLibraries: boolean) {
  const { tree, frames } = data;
  const rows: Rows = { parent: [], key: [], value: [], node: [], folded: [] };
  const rowOfNode = new Int32Array(tree.parent.length);
  const library = foldsLibraries ? excursions(data) : null;
  const found = new Map<number, number>();
  for (let node = 0; node < rowOfNode.length; node++) {
    const above = node ? rowOfNode[tree.parent[node]] : -1;
    const name = library ? library[node] : NOT_IN_LIBRARY;
    const key = name >= 0 ? frames.kind.length + name : tree.frame[node];
    const row = name === INSIDE ? above : childRow(rows, found, above, key, node);
    if (name !== NOT_IN_LIBRARY) rows.folded[row]++;
    rows.value[row] += own[node] > 0 ? own[node] : 0;
    rowOfNode[node] = row;
  }
  return { rows, rowOfNode };
}

const NOT_IN_LIBRARY = -1;
const INSIDE = -2;

/** For the first node of each excursion into libraries the library that names it; INSIDE for those below it. */
function excursions(data: ProfileData): Int32Array {
  const { tree, frames, libraries } = data;
  const isCommon = libraries.map((name) => COMMON.includes(name));
  const start = new Int32Array(tree.parent.length).fill(-1);
  const named = new Int32Array(tree.parent.length).fill(NOT_IN_LIBRARY);
  for (let node = 0; node < start.length; node++) {
    const frame = tree.frame[node];
    const library = frames.kind[frame] === FrameKind.Python ? frames.library[frame] : -1;
    if (library < 0) continue;
    const entered = node ? start[tree.parent[node]] : -1;
    start[node] = entered >= 0 ? entered : node;
    if (entered < 0) named[node] = library;
    else {
      named[node] = INSIDE;
      if (isCommon[named[entered]] && !isCommon[library]) named[entered] = library;
    }
  }
  return named;
}

function childRow(rows: Rows, found: Map<number, number>, parent: number, key: number, node: number): number {
  // Keys are below 2^22 and rows below 2^31, so the product is exact.
  const place = (parent + 1) * 2 ** 22 + key;
  const known = found.get(place);
  if (known !== undefined) return known;
  found.set(place, rows.parent.length);
  rows.parent.push(parent);
  rows.key.push(key);
  rows.value.push(0);
  rows.node.push(node);
  rows.folded.push(0);
  return rows.parent.length - 1;
}

function addUp(rows: Rows): void {
  for (let row = rows.parent.length - 1; row > 0; row--) rows.value[rows.parent[row]] += rows.value[row];
}

/** Level by level, without rows of no value. */
function arrange(rows: Rows, rowOfNode: Int32Array): Forest {
  const children: number[][] = rows.parent.map(() => []);
  for (let row = 1; row < rows.parent.length; row++) if (rows.value[row] > 0) children[rows.parent[row]].push(row);
  const order = [0];
  const place = new Int32Array(rows.parent.length).fill(-1);
  const first: number[] = [];
  const start = [0];
  const depth = [0];
  const parent = [-1];
  place[0] = 0;
  for (let at = 0; at < order.length; at++) {
    const below = children[order[at]].sort((one, other) => rows.value[other] - rows.value[one] || one - other);
    let left = start[at];
    first.push(order.length);
    for (const child of below) {
      place[child] = order.length;
      order.push(child);
      start.push(left);
      depth.push(depth[at] + 1);
      parent.push(at);
      left += rows.value[child] / rows.value[0];
    }
  }
  return {
    parent: Int32Array.from(parent),
    depth: Int32Array.from(depth),
    key: Int32Array.from(order, (row) => rows.key[row]),
    value: Float64Array.from(order, (row) => rows.value[row]),
    start: Float64Array.from(start),
    first: Int32Array.from(first),
    count: Int32Array.from(order, (row) => children[row].length),
    node: Int32Array.from(order, (row) => rows.node[row]),
    folded: Int32Array.from(order, (row) => rows.folded[row]),
    rowOfNode: rowOfNode.map((row) => (row < 0 ? -1 : place[row])),
  };
}
