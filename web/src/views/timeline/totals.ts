// What ran within a span: time by kernel, and how long GPUs were idle.

import type { ProfileData } from "../../data/profile";
import { shareText, timeText } from "../../ui/numbers";
import type { Busy } from "./idle";
import { busyWithin } from "./idle";
import type { Group, Row } from "./lanes";
import { firstFrom } from "./order";
import type { Span } from "./span";

export interface FrameTotal {
  /** Row of the table of frames; of kernels that are called the same, such as variants of one, the first that ran. */
  frame: number;
  /** Within the span; of what sticks out, the part inside. */
  time_ns: number;
  count: number;
}

export interface Totals {
  /** Whether they are of GPUs; else of the outermost slices of host threads. */
  ofGpu: boolean;
  /** Most time first. */
  frames: FrameTotal[];
  /** What shares are of: all work of GPUs; of threads, several lanes of which may hold the same time, the span. */
  whole_ns: number;
  /** Share of the span in which each device did nothing. */
  idle: { label: string; share: number }[];
}

/** What ran on GPUs within a span; without GPUs, what ran on threads. */
export function totalsOf(data: ProfileData, groups: Group[], busy: Busy[], span: Span): Totals {
  const lanes = groups.flatMap((group) => group.lanes);
  const ofGpu = lanes.some((lane) => lane.isGpu);
  const hasMeasured = lanes.some((lane) => !lane.isGpu && !lane.isSampled);
  const found = new Map<number | string, FrameTotal>();
  for (const lane of lanes) {
    if (lane.isGpu !== ofGpu || (lane.isSampled && hasMeasured)) continue;
    // Slices that overlap on a stream stand below each other; those below on a thread are part of those above.
    for (const row of ofGpu ? lane.rows : lane.rows.slice(0, 1)) addRow(data, row, span, ofGpu, found);
  }
  const frames = [...found.values()].sort((a, b) => b.time_ns - a.time_ns);
  const length = span.end - span.start;
  return {
    ofGpu,
    frames,
    whole_ns: ofGpu ? frames.reduce((sum, frame) => sum + frame.time_ns, 0) : length,
    idle: busy.map((one) => ({ label: one.label, share: 1 - busyWithin(one, span) / length })),
  };
}

function addRow(
  data: ProfileData,
  row: Row,
  span: Span,
  ofGpu: boolean,
  found: Map<number | string, FrameTotal>,
): void {
  const { slices, tree } = data;
  for (let index = firstFrom(row.end, span.start); index < row.start.length; index += 1) {
    if (row.start[index] >= span.end) break;
    // It ended as the span begins, as what ran before a gap does.
    if (row.start[index] < span.start && row.end[index] <= span.start) continue;
    const frame = tree.frame[slices.node[row.slices[index]]];
    const key = ofGpu ? data.frames.label[frame] : frame;
    let total = found.get(key);
    if (total === undefined) {
      total = { frame, time_ns: 0, count: 0 };
      found.set(key, total);
    }
    total.time_ns += Math.min(row.end[index], span.end) - Math.max(row.start[index], span.start);
    total.count += 1;
  }
}

export function sharesText({ ofGpu, whole_ns }: Totals): string {
  return `Shares are of ${ofGpu ? "" : "these "}${timeText(whole_ns)}${ofGpu ? " of GPU work" : ""}.`;
}

/** More devices are told together. */
const MAX_DEVICES = 4;

/** How long each device was idle; of many the least, the mean and the most. */
export function idleTexts({ idle }: Totals): string[] {
  if (idle.length <= MAX_DEVICES) return idle.map((one) => `${one.label} idle ${shareText(one.share)}`);
  const shares = idle.map((one) => one.share);
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  const [least, most] = [Math.min(...shares), Math.max(...shares)].map(shareText);
  return [`${idle.length} GPUs idle ${shareText(mean)} (${least} to ${most})`];
}
