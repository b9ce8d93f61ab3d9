// Tracks as lanes: slices that contain others stand above them, domains of NVTX apart, processes together.

import type { ProfileData, Slices } from "../../data/profile";
import { FrameKind, TrackKind } from "../../data/profile";
import { firstFrom } from "./order";

/** Slices of one depth, which never overlap. */
export interface Row {
  /** Rows of the table of slices. */
  slices: Int32Array;
  start: Float64Array;
  end: Float64Array;
  /** Time in all slices before each: one entry more than slices. */
  busy: Float64Array;
}

export interface Lane {
  track: number;
  label: string;
  isGpu: boolean;
  /** Whether it shows samples, which are of the same time as what was measured of their thread. */
  isSampled: boolean;
  /** Outermost first. */
  rows: Row[];
}

/** The lanes of one process. */
export interface Group {
  label: string;
  process: number;
  lanes: Lane[];
}

/** Streams first, threads last, samples before them: those of the main thread above it. */
const RANKS: Record<number, number> = { [TrackKind.GpuStream]: 0, [TrackKind.Samples]: 2, [TrackKind.HostThread]: 3 };

const MAX_DEPTH = 64;
// More prefixes than that on one thread are names with values in them, such as `step 12: forward`.
const MAX_DOMAINS = 8;
const DOMAIN = /^([\w./-]{1,40}): ./;

/** All lanes that have slices; of a process the streams of its GPUs first, and what rests in the steady state last. */
export function groupsOf(data: ProfileData): Group[] {
  const groups = new Map<number, Group>();
  for (const lane of lanesOf(data)) {
    const process = data.tracks.process[lane.track];
    let group = groups.get(process);
    if (group === undefined) {
      group = { label: processLabel(data.meta, process), process, lanes: [] };
      groups.set(process, group);
    }
    group.lanes.push(lane);
  }
  const steady = data.summary.wall?.steady;
  for (const group of groups.values()) {
    const places = new Map(group.lanes.map((lane) => [lane, place(data, lane, steady)]));
    group.lanes.sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0));
  }
  return [...groups.values()];
}

function place(data: ProfileData, lane: Lane, steady: [number, number] | null | undefined): number {
  const rank = RANKS[data.tracks.kind[lane.track]] ?? 1;
  const rests = steady ? !lane.rows.some((row) => hasSlices(row, steady)) : false;
  return (rests ? 1e8 : 0) + rank * 1e6 + Math.max(data.tracks.device[lane.track], 0) * 1e4;
}

function hasSlices({ start, end }: Row, span: [number, number]): boolean {
  const next = firstFrom(end, span[0]);
  return next < end.length && start[next] < span[1];
}

/** `rank 3, process 4711 on node-a`, as far as it is known. */
export function processLabel(meta: Record<string, unknown>, process: number): string {
  const recordings = Array.isArray(meta.merged) ? (meta.merged as Record<string, unknown>[]) : [meta];
  const known = recordings.find((recording) => recording?.pid === process);
  const ranks = recordings.length > 1 || (typeof meta.ranks === "number" && meta.ranks > 1);
  const rank = ranks && typeof known?.rank === "number" ? `rank ${known.rank}, ` : "";
  const host = recordings.length > 1 && typeof known?.host === "string" ? ` on ${known.host}` : "";
  return `${rank}process ${process}${host}`;
}

function* lanesOf(data: ProfileData): Generator<Lane> {
  const { slices, tracks } = data;
  const domains = domainsOfFrames(data);
  for (let track = 0; track < tracks.kind.length; track += 1) {
    const first = firstFrom(slices.track, track);
    const last = firstFrom(slices.track, track + 1, first);
    if (first === last) continue;
    const isGpu = tracks.kind[track] === TrackKind.GpuStream;
    for (const [domain, rows] of isGpu ? [["", all(first, last)] as const] : byDomain(data, domains, first, last)) {
      const label = domain ? `${tracks.label[track]} · ${domain}` : tracks.label[track];
      yield {
        track,
        label,
        isGpu,
        isSampled: tracks.kind[track] === TrackKind.Samples,
        rows: (isGpu ? beside : nested)(slices, rows),
      };
    }
  }
}

/** The domain in a name such as `domain: message` of each frame; empty: none. */
function domainsOfFrames(data: ProfileData): string[] {
  return data.frames.name.map((name, frame) => {
    const kind = data.frames.kind[frame];
    return kind === FrameKind.Scope || kind === FrameKind.Marker ? (DOMAIN.exec(name)?.[1] ?? "") : "";
  });
}

/** Rows of the slices of each domain of a track, those of none first. */
function byDomain(data: ProfileData, domains: string[], first: number, last: number): [string, Int32Array][] {
  const { slices, tree } = data;
  const counts = new Map<string, number>([["", 0]]);
  for (let row = first; row < last; row += 1) {
    const domain = domains[tree.frame[slices.node[row]]];
    counts.set(domain, (counts.get(domain) ?? 0) + 1);
  }
  if (counts.size === 1 || counts.size > MAX_DOMAINS) return [["", all(first, last)]];
  const rows = new Map([...counts].map(([domain, count]) => [domain, new Int32Array(count)]));
  const filled = new Map<string, number>();
  for (let row = first; row < last; row += 1) {
    const domain = domains[tree.frame[slices.node[row]]];
    const at = filled.get(domain) ?? 0;
    rows.get(domain)![at] = row;
    filled.set(domain, at + 1);
  }
  return [...rows].filter(([, own]) => own.length > 0);
}

function all(first: number, last: number): Int32Array {
  return Int32Array.from({ length: last - first }, (_, index) => first + index);
}

/** Slices by depth: the number of open slices that each begins in. */
export function nested(slices: Slices, rows: Int32Array): Row[] {
  const depth = new Uint8Array(rows.length);
  const counts: number[] = [];
  const open = new Float64Array(MAX_DEPTH);
  let level = 0;
  for (let index = 0; index < rows.length; index += 1) {
    const start = slices.start[rows[index]];
    while (level > 0 && open[level - 1] <= start) level -= 1;
    if (level === MAX_DEPTH) level -= 1;
    open[level] = start + slices.duration[rows[index]];
    depth[index] = level;
    counts[level] = (counts[level] ?? 0) + 1;
    level += 1;
  }
  return counts.map((count, own) => rowOf(slices, rows, depth, own, count));
}

/** Work of a stream, each in the first row that is free: it overlaps a little where a kernel may begin before another ends. */
export function beside(slices: Slices, rows: Int32Array): Row[] {
  const depth = new Uint8Array(rows.length);
  const counts: number[] = [];
  const ends = new Float64Array(MAX_DEPTH).fill(Number.NEGATIVE_INFINITY);
  for (let index = 0; index < rows.length; index += 1) {
    const start = slices.start[rows[index]];
    let level = 0;
    while (level < MAX_DEPTH - 1 && ends[level] > start) level += 1;
    ends[level] = start + slices.duration[rows[index]];
    depth[index] = level;
    while (counts.length <= level) counts.push(0);
    counts[level] += 1;
  }
  return counts.map((count, own) => rowOf(slices, rows, depth, own, count));
}

function rowOf(slices: Slices, rows: Int32Array, depth: Uint8Array, own: number, count: number): Row {
  const row: Row = {
    slices: new Int32Array(count),
    start: new Float64Array(count),
    end: new Float64Array(count),
    busy: new Float64Array(count + 1),
  };
  let at = 0;
  for (let index = 0; index < rows.length; index += 1) {
    if (depth[index] !== own) continue;
    const slice = rows[index];
    row.slices[at] = slice;
    row.start[at] = slices.start[slice];
    row.end[at] = slices.start[slice] + slices.duration[slice];
    row.busy[at + 1] = row.busy[at] + slices.duration[slice];
    at += 1;
  }
  return row;
}

/** Place in a row of the slice at an instant, or of the nearest within `slack_ns`; -1: none. */
export function sliceAt(row: Row, time_ns: number, slack_ns: number): number {
  const after = firstFrom(row.start, time_ns);
  let best = -1;
  let distance = slack_ns;
  for (const index of [after - 1, after]) {
    if (index < 0 || index >= row.start.length) continue;
    const away = Math.max(row.start[index] - time_ns, time_ns - row.end[index], 0);
    if (away <= distance) {
      best = index;
      distance = away;
    }
  }
  return best;
}
