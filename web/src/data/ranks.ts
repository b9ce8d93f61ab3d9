// The ranks of a job compared, as bragg/views/web/ranks.py writes them.

export interface RankRow {
  rank: number;
  /** Empty: not known. */
  host: string;
  /** What it cost the others in the steps of each column, in the mean. */
  cost_ns: number[];
  /** What it cost, of the time of all steps. */
  share: number;
  /** Its work on the critical path, of that path; null: not known. */
  path: number | null;
  /** How much later it could come to its median collective; null: not known. */
  slack_ns: number | null;
}

/** A collective on one rank. */
export interface LaneBar {
  operation: string;
  /** From the start of the step: its begin, when the last rank had come, its end. */
  times_ns: [number, number, number];
  /** The rank that came last; null: not known. */
  last: number | null;
}

/** A step in which one rank costs the others much. */
export interface StepLanes {
  step: number;
  length_ns: number;
  /** Collectives of a rank behind those that are shown. */
  left_out: number;
  rows: { rank: number; bars: LaneBar[] }[];
}

export interface Ranks {
  sentence: string;
  /** The rank whose profile the page shows; null: of none. */
  shown: number | null;
  /** `step` or `round`. */
  unit: string;
  findings: { text: string; hint: string }[];
  /** Whose work the critical path is, and what would shorten it. */
  ideas: string[];
  /** Collectives that take longest, with their bandwidth, and the way that NCCL took. */
  transfers: string[];
  notes: string[];
  /** Column i is of steps edges[i] to edges[i + 1] - 1. */
  edges: number[];
  /** What is painted darkest. */
  most_ns: number;
  /** The most that a rank cost that has no row, of the time of all steps; null: there is none. */
  rest: number | null;
  rows: RankRow[];
  /** The steps that cost most, the most first; empty: no rank costs the others anything, or only sums are known. */
  lanes: StepLanes[];
}
