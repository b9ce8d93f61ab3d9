// What a cell of the heat map says; without a browser.

import type { RankRow, Ranks } from "../../data/ranks";
import { shareText, timeText } from "../../ui/numbers";

/** `steps 3 to 4`, or `step 3` of a column that has one; steps count from 1, the start is left out. */
export function stepsText({ edges, unit }: Ranks, column: number): string {
  const [first, last] = [edges[column], edges[column + 1] - 1];
  return first === last ? `${unit} ${first}` : `${unit}s ${first} to ${last}`;
}

/** What a rank cost in the steps of a column, in the mean. */
export function cellText(ranks: Ranks, row: RankRow, column: number): string {
  return `rank ${row.rank}, ${stepsText(ranks, column)}: costs the others ${timeText(row.cost_ns[column])}`;
}

/** How dark a cell is, 0 to 1. */
export function cellHeat(ranks: Ranks, cost_ns: number): number {
  return ranks.most_ns > 0 ? Math.min(cost_ns / ranks.most_ns, 1) : 0;
}

/** What stands right of a row; null: not known. */
export function rowTexts(row: RankRow): string[] {
  return [
    shareText(row.share),
    row.path === null ? "" : shareText(row.path),
    row.slack_ns === null ? "" : timeText(row.slack_ns),
  ];
}
