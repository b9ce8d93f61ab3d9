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

export interface Ranks {
  sentence: string;
  /** The rank whose profile the page shows; null: of none. */
  shown: number | null;
  /** `step` or `round`. */
  unit: string;
  findings: { text: string; hint: string }[];
  /** Whose work the critical path is, and what would shorten it. */
  ideas: string[];
  notes: string[];
  /** Column i is of steps edges[i] to edges[i + 1] - 1. */
  edges: number[];
  /** What is painted darkest. */
  most_ns: number;
  /** The most that a rank cost that has no row, of the time of all steps; null: there is none. */
  rest: number | null;
  rows: RankRow[];
}
