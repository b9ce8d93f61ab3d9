// What the lanes of one step say, and where their bars are; without a browser.

import type { LaneBar, StepLanes } from "../../data/ranks";
import { timeText } from "../../ui/numbers";

/** `all-reduce: waits 2.30 ms for rank 5, then 200 us`; of the rank itself `rank 5 comes last to all-reduce: 200 us`. */
export function barText(rank: number, { operation, times_ns: [begin, arrived, end], last }: LaneBar): string {
  if (last === rank) return `rank ${rank} comes last to ${operation}: ${timeText(end - begin)}`;
  const whom = last === null ? "others" : `rank ${last}`;
  return `rank ${rank}, ${operation}: waits ${timeText(arrived - begin)} for ${whom}, then ${timeText(end - arrived)}`;
}

/** Left edge and width of a stretch of time, in percent of the step. */
export function place({ length_ns }: StepLanes, from_ns: number, to_ns: number): [number, number] {
  return [(100 * from_ns) / length_ns, (100 * (to_ns - from_ns)) / length_ns];
}

/** The longest wait, in a sentence; empty: nobody waits. */
export function longestWait({ rows }: StepLanes): string {
  const bars = rows.flatMap(({ rank, bars }) => bars.map((bar) => ({ rank, bar })));
  const waits = bars.filter(({ rank, bar }) => bar.last !== null && bar.last !== rank);
  const wait = ({ times_ns }: LaneBar) => times_ns[1] - times_ns[0];
  const most = waits.reduce((one, other) => (wait(other.bar) > wait(one.bar) ? other : one), waits[0]);
  if (most === undefined) return "";
  return `Rank ${most.rank} waits longest: ${timeText(wait(most.bar))} for rank ${most.bar.last}, in ${most.bar.operation}.`;
}
