// Why a GPU was idle: the host had not launched what came next, or what it had launched had not begun.

import type { ProfileData } from "../../data/profile";
import { gapsOfLane, type Model } from "./model";
import { firstFrom } from "./order";
import type { Span } from "./span";

export interface GapCause {
  /** Row of slices: what ended the gap. */
  next: number;
  /** Row of slices: what launched it. */
  launch: number;
  /** Up to the end of the launch. */
  waiting_ns: number;
  /** From there to the start. */
  starting_ns: number;
}

/** What ended a gap, and what it waited for; null where the launch is not known. */
export function gapCause(data: ProfileData, model: Model, gap: Span): GapCause | null {
  const { start, duration } = data.slices;
  for (const next of startingAt(data, model, gap)) {
    const launch = model.flows.of(next).find(([, target]) => target === next)?.[0];
    if (launch === undefined) continue;
    const launched = Math.min(Math.max(start[launch] + duration[launch], gap.start), gap.end);
    return { next, launch, waiting_ns: launched - gap.start, starting_ns: gap.end - launched };
  }
  return null;
}

/** Slices that end a gap, on the streams of the device that has it. */
function* startingAt(data: ProfileData, model: Model, gap: Span): Generator<number> {
  for (const lane of model.groups.flatMap((group) => group.lanes)) {
    const gaps = gapsOfLane(data, model, lane);
    if (gaps === null || gaps.start[firstFrom(gaps.start, gap.start)] !== gap.start) continue;
    for (const row of lane.rows) {
      const index = firstFrom(row.start, gap.end);
      if (row.start[index] === gap.end) yield row.slices[index];
    }
  }
}
