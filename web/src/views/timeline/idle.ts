// When GPUs worked and when they waited, as Python found it (bragg/analyze/pauses.py).

import type { PausesOfDevice, ProfileData } from "../../data/profile";
import { firstFrom } from "./order";
import type { Span } from "./span";

/** The times in which one device of one process worked, ascending and apart: what is between its pauses. */
export interface Busy {
  process: number;
  device: number;
  label: string;
  start: Float64Array;
  end: Float64Array;
  /** Busy time before each: one entry more than times. */
  before: Float64Array;
  /** Row of the table of pauses of its first one. */
  firstPause: number;
}

/** One entry for each device of each process, ordered by them. */
export function busyOfDevices(data: ProfileData): Busy[] {
  const { devices } = data.pauses;
  let firstPause = 0;
  return devices.map((one) => {
    const isShared = devices.filter((other) => other.device === one.device).length > 1;
    const label = `GPU ${one.device}${isShared ? ` of process ${one.process}` : ""}`;
    const busy = { process: one.process, device: one.device, label, ...between(data, one, firstPause), firstPause };
    firstPause += one.count;
    return busy;
  });
}

function between(
  data: ProfileData,
  { begins, span, count }: PausesOfDevice,
  first: number,
): Pick<Busy, "start" | "end" | "before"> {
  const { last, next } = data.pauses;
  const { slices } = data;
  const start = new Float64Array(count + 1);
  const end = new Float64Array(count + 1);
  const before = new Float64Array(count + 2);
  start[0] = begins;
  end[count] = begins + span;
  for (let index = 0; index < count; index += 1) {
    end[index] = slices.start[last[first + index]] + slices.duration[last[first + index]];
    start[index + 1] = slices.start[next[first + index]];
  }
  for (let index = 0; index <= count; index += 1) before[index + 1] = before[index] + end[index] - start[index];
  return { start, end, before };
}

/** Busy time within a span. */
export function busyWithin(busy: Busy, span: Span): number {
  return busyBefore(busy, span.end) - busyBefore(busy, span.start);
}

function busyBefore(busy: Busy, time_ns: number): number {
  const index = firstFrom(busy.start, time_ns);
  if (index === 0) return 0;
  return busy.before[index] - Math.max(busy.end[index - 1] - time_ns, 0);
}

/** The gap between the n-th busy time and the next. */
export function gap(busy: Busy, index: number): Span {
  return { start: busy.end[index], end: busy.start[index + 1] };
}

/** The gaps of a device, the longest first. */
export function longestGaps(busy: Busy, count: number): Span[] {
  return Array.from({ length: Math.max(busy.start.length - 1, 0) }, (_, index) => gap(busy, index))
    .sort((a, b) => b.end - b.start - (a.end - a.start))
    .slice(0, count);
}

/** Whom a GPU waited for. */
export interface GapCause {
  /** Row of slices: what ended the gap. */
  next: number;
  /** Row of slices: what launched it; -1: not known. */
  launch: number;
  /** Until the host had launched; null: not known. */
  waiting_ns: number | null;
  /** From there to the start; null: not known. */
  starting_ns: number | null;
}

/** What ended a gap, and what it waited for; null: there is no such gap. */
export function gapCause(data: ProfileData, busies: Busy[], span: Span): GapCause | null {
  for (const busy of busies) {
    const index = firstFrom(busy.end, span.start);
    if (busy.end[index] !== span.start || busy.start[index + 1] !== span.end) continue;
    const next = data.pauses.next[busy.firstPause + index];
    const launch = data.pauses.launch[busy.firstPause + index];
    if (launch < 0) return { next, launch, waiting_ns: null, starting_ns: null };
    const made = data.slices.start[launch] + data.slices.duration[launch];
    const launched = Math.min(Math.max(made, span.start), span.end);
    return { next, launch, waiting_ns: launched - span.start, starting_ns: span.end - launched };
  }
  return null;
}
