// What is known of slices and gaps: names and values.

import type { ProfileData } from "../../data/profile";
import { labelOf, pathOf } from "../../data/tree";
import { timeText } from "../../ui/numbers";
import { gapCause } from "./idle";
import type { Model } from "./model";
import type { Span } from "./span";
import { instantText } from "./ticks";

/** Longer parts of a path are cut. */
const MAX_LABEL = 120;

export type Facts = [name: string, value: string][];

export function sliceLabel(data: ProfileData, slice: number): string {
  return labelOf(data, data.slices.node[slice]);
}

export function sliceFacts(data: ProfileData, slice: number): Facts {
  const { slices, tracks } = data;
  const path = pathOf(data.tree, slices.node[slice]).slice(1, -1);
  const facts: Facts = [
    ["duration", timeText(slices.duration[slice])],
    ["start", instantText(slices.start[slice])],
    ["track", tracks.label[slices.track[slice]]],
  ];
  if (slices.correlation[slice]) facts.push(["correlation", String(slices.correlation[slice])]);
  if (path.length > 0) facts.push(["path", path.map((node) => labelOf(data, node).slice(0, MAX_LABEL)).join(" › ")]);
  return facts;
}

export function gapFacts(data: ProfileData, model: Model, gap: Span): Facts {
  const cause = gapCause(data, model.busy, gap);
  const start: Facts = [["start", instantText(gap.start)]];
  if (cause === null) return start;
  if (cause.launch < 0) return [...start, ["then ran", sliceLabel(data, cause.next)], ["launched by", "not recorded"]];
  return [
    ...start,
    ["waiting for the host to launch", timeText(cause.waiting_ns)],
    ["between launch and start", timeText(cause.starting_ns)],
    ["launched", `${sliceLabel(data, cause.next)} by ${sliceLabel(data, cause.launch)}`],
  ];
}
