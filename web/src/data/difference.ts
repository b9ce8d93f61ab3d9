// Two profiles on one tree. Written by bragg/views/web/diff.py.

/** A kernel, or a function of the host, over all call paths; values with what ran below. */
export interface ChangedRow {
  label: string;
  before: number;
  after: number;
  /** null: not counted. */
  count_before: number | null;
  count_after: number | null;
}

/** The tree of the page holds the call paths of either; its metrics `before` and `after` are what is compared. */
export interface DifferenceData {
  /** What is compared. */
  metric: string;
  unit: string;
  /** What the reader calls the two. */
  before: string;
  after: string;
  /** What the reader of two different programs must know; empty: they are runs of one. */
  note: string;
  /** The largest change first. */
  rows: ChangedRow[];
}
