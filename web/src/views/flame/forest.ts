// A call tree as a flame graph draws it: equal siblings as one row, the largest first.

import { Fold, type ProfileData } from "../../data/profile";
import { Rows } from "./rows";

export type Direction = "down" | "up" | "sandwich";

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
  /** Frames of the longest call path that a row of a library stands for; 0 elsewhere. */
  folded: Int32Array;
  /** The row of each node of the profile; -1: it has none. */
  rowOfNode: Int32Array;
  /** In a sandwich: a second row of the chosen name, whose callers stand below it as children; 0: not a sandwich. */
  callers: number;
}

// Callers of less than this share of the whole are not followed: nobody could point at them.
const LEAST_SHARE = 1e-5;

/** From the root to the leaves: who called what. */
export function topDown(data: ProfileData, own: Float64Array, foldsLibraries: boolean): Forest {
  const { rows, rowOfNode } = mergedRows(data, own, foldsLibraries);
  addUp(rows);
  return arrange(rows, rowOfNode);
}

/** From what took the time to its callers. */
export function bottomUp(data: ProfileData, own: Float64Array, foldsLibraries: boolean): Forest {
  const { rows: callers, rowOfNode } = mergedRows(data, own, foldsLibraries);
  const rows = new Rows();
  rows.child(-1, data.tree.frame[0], 0);
  const leafRow = new Int32Array(callers.parent.length).fill(-1);
  const leaves = callers.value.flatMap((value, row) => (value > 0 ? [row] : []));
  let level = leaves.map((row) => ({ leaf: row, above: row, into: 0, value: callers.value[row] }));
  for (const { value } of level) rows.value[0] += value;
  const least = rows.value[0] * LEAST_SHARE;
  while (level.length) {
    const isFirst = rows.parent.length === 1;
    for (const path of level) {
      path.into = rows.child(path.into, callers.key[path.above], callers.node[path.above]);
      rows.value[path.into] += path.value;
      rows.folded[path.into] = Math.max(rows.folded[path.into], callers.folded[path.above]);
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

/** What a name called and, in a tree of its own, who called it: every place of the name together. */
export function sandwich(data: ProfileData, own: Float64Array, foldsLibraries: boolean, node: number): Forest {
  const { rows, rowOfNode } = mergedRows(data, own, foldsLibraries);
  const ownValue = Float64Array.from(rows.value);
  addUp(rows);
  const key = rows.key[rowOfNode[node]];
  const callees = new Rows();
  const callers = new Rows();
  callees.child(-1, key, node);
  callers.child(-1, key, node);
  // Of a name within itself the outermost counts: what is inside is part of it.
  const into = new Int32Array(rows.parent.length).fill(-1);
  for (let row = 0; row < into.length; row++) {
    const above = row ? into[rows.parent[row]] : -1;
    if (above < 0 && rows.key[row] !== key) continue;
    into[row] = above < 0 ? 0 : callees.child(above, rows.key[row], rows.node[row]);
    callees.value[into[row]] += ownValue[row];
    callees.folded[into[row]] = Math.max(callees.folded[into[row]], rows.folded[row]);
    if (above < 0) addCallers(rows, row, callers);
  }
  addUp(callees);
  const below = arrange(
    callees,
    rowOfNode.map((row) => (row < 0 ? -1 : into[row])),
  );
  return joined(below, arrange(callers, new Int32Array(0)));
}

function addCallers(rows: Rows, row: number, callers: Rows): void {
  let at = 0;
  callers.value[0] += rows.value[row];
  callers.folded[0] = Math.max(callers.folded[0], rows.folded[row]);
  for (let above = rows.parent[row]; above > 0; above = rows.parent[above]) {
    at = callers.child(at, rows.key[above], rows.node[above]);
    callers.value[at] += rows.value[row];
    callers.folded[at] = Math.max(callers.folded[at], rows.folded[above]);
  }
}

/** Two trees as one table: the rows of the second behind those of the first. */
function joined(one: Forest, other: Forest): Forest {
  const n = one.key.length;
  const both = (a: Int32Array, b: Int32Array, by = 0) =>
    Int32Array.from([...a, ...b.map((row) => (row < 0 ? -1 : row + by))]);
  return {
    parent: both(one.parent, other.parent, n),
    depth: both(one.depth, other.depth),
    key: both(one.key, other.key),
    value: Float64Array.from([...one.value, ...other.value]),
    start: Float64Array.from([...one.start, ...other.start]),
    first: both(one.first, other.first, n),
    count: both(one.count, other.count),
    node: both(one.node, other.node),
    folded: both(one.folded, other.folded),
    rowOfNode: one.rowOfNode,
    callers: n,
  };
}

/** Own values by row, where equal siblings and the frames of an excursion into a library are one row. */
function mergedRows(data: ProfileData, own: Float64Array, foldsLibraries: boolean) {
  const { tree, frames } = data;
  const rows = new Rows();
  const rowOfNode = new Int32Array(tree.parent.length);
  const length = new Int32Array(rowOfNode.length); // frames of an excursion that end at each node
  for (let node = 0; node < rowOfNode.length; node++) {
    const above = node ? rowOfNode[tree.parent[node]] : -1;
    const fold = foldsLibraries ? tree.fold[node] : Fold.Own;
    const key = fold >= 0 ? frames.kind.length + fold : tree.frame[node];
    const row = fold === Fold.Inside || fold === Fold.Part ? above : rows.child(above, key, node);
    if (fold !== Fold.Own) {
      const before = fold >= 0 ? 0 : length[tree.parent[node]];
      length[node] = fold === Fold.Part ? before : before + 1;
      rows.folded[row] = Math.max(rows.folded[row], length[node]);
    }
    rows.value[row] += own[node] > 0 ? own[node] : 0;
    rowOfNode[node] = row;
  }
  return { rows, rowOfNode };
}

function addUp(rows: Rows): void {
  for (let row = rows.parent.length - 1; row > 0; row--) rows.value[rows.parent[row]] += rows.value[row];
}

/** Level by level, without rows of no value. */
function arrange(rows: Rows, rowOfNode: Int32Array): Forest {
  const { begin, children } = childLists(rows);
  const forest = emptyForest(children.length + 1, rowOfNode);
  const order = new Int32Array(children.length + 1);
  const place = new Int32Array(rows.parent.length).fill(-1);
  place[0] = 0;
  forest.parent[0] = -1;
  let n_placed = 1;
  for (let at = 0; at < n_placed; at++) {
    const row = order[at];
    const below = children.subarray(begin[row], begin[row + 1]);
    if (below.length > 1) below.sort((one, other) => rows.value[other] - rows.value[one] || one - other);
    forest.key[at] = rows.key[row];
    forest.value[at] = rows.value[row];
    forest.node[at] = rows.node[row];
    forest.folded[at] = rows.folded[row];
    forest.first[at] = n_placed;
    forest.count[at] = below.length;
    let left = forest.start[at];
    for (const child of below) {
      order[n_placed] = child;
      place[child] = n_placed;
      forest.parent[n_placed] = at;
      forest.depth[n_placed] = forest.depth[at] + 1;
      forest.start[n_placed++] = left;
      left += rows.value[child] / rows.value[0];
    }
  }
  for (let node = 0; node < rowOfNode.length; node++) {
    forest.rowOfNode[node] = rowOfNode[node] < 0 ? -1 : place[rowOfNode[node]];
  }
  return forest;
}

/** The rows that have a value by parent: those of row r are children[begin[r]] up to children[begin[r + 1]]. */
function childLists(rows: Rows): { begin: Int32Array; children: Int32Array } {
  const n_rows = rows.parent.length;
  const begin = new Int32Array(n_rows + 2);
  for (let row = 1; row < n_rows; row++) if (rows.value[row] > 0) begin[rows.parent[row] + 2]++;
  for (let row = 2; row < begin.length; row++) begin[row] += begin[row - 1];
  const children = new Int32Array(begin[n_rows + 1]);
  for (let row = 1; row < n_rows; row++) if (rows.value[row] > 0) children[begin[rows.parent[row] + 1]++] = row;
  return { begin, children };
}

function emptyForest(n_rows: number, rowOfNode: Int32Array): Forest {
  const whole = () => new Int32Array(n_rows);
  return {
    parent: whole(),
    depth: whole(),
    key: whole(),
    value: new Float64Array(n_rows),
    start: new Float64Array(n_rows),
    first: whole(),
    count: whole(),
    node: whole(),
    folded: whole(),
    rowOfNode: new Int32Array(rowOfNode.length),
    callers: 0,
  };
}
