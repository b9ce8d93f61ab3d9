// When GPUs worked and when they waited: a GPU is idle while none of its streams runs anything.

import type { ProfileData } from "../../data/profile";
import { TrackKind } from "../../data/profile";
import { firstFrom } from "./order";
import type { Span } from "./span";

/** The times in which one device of one process worked, ascending and apart. */
export interface Busy {
  process: number;
  device: number;
  label: string;
  start: Float64Array;
  end: Float64Array;
  /** Busy time before each: one entry more than times. */
  before: Float64Array;
}

/** One entry for each device of each process, ordered by them. */
export function busyOfDevices(data: ProfileData): Busy[] {
  const { slices, tracks } = data;
  const rows = new Map<string, number[]>();
  for (let row = 0; row < slices.track.length; row += 1) {
    const track = slices.track[row];
    if (tracks.kind[track] !== TrackKind.GpuStream) continue;
    const key = `${tracks.process[track]}/${tracks.device[track]}`;
    const own = rows.get(key);
    if (own === undefined) rows.set(key, [row]);
    else own.push(row);
  }
  const places = [...rows.keys()].map((key) => key.split("/").map(Number));
  return [...rows.values()].map((own, index) => {
    const [process, device] = places[index];
    const isShared = places.filter((place) => place[1] === device).length > 1;
    const label = `GPU ${device}${isShared ? ` of process ${process}` : ""}`;
    return { process, device, label, ...united(slices.start, slices.duration, own) };
  });
}

function united(starts: Float64Array, durations: Float64Array, rows: number[]): Pick<Busy, "start" | "end" | "before"> {
  const ordered = Float64Array.from(rows).sort((a, b) => starts[a] - starts[b]);
  const start: number[] = [];
  const end: number[] = [];
  for (const row of ordered) {
    const ends = starts[row] + durations[row];
    const last = end.length - 1;
    if (last >= 0 && starts[row] <= end[last]) end[last] = Math.max(end[last], ends);
    else {
      start.push(starts[row]);
      end.push(ends);
    }
  }
  const before = new Float64Array(start.length + 1);
  for (let index = 0; index < start.length; index += 1) before[index + 1] = before[index] + end[index] - start[index];
  return { start: Float64Array.from(start), end: Float64Array.from(end), before };
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
