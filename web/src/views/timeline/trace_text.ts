// Traces as text, for tests; the same as tests/support/traces.py.
//
//   thread 1
//     0-10 step
//     2-4 cuLaunchKernel ->5
//   stream 7
//     6-9 matmul <-5

import { FrameKind, type Pauses, type ProfileData, TrackKind } from "../../data/profile";
import { NO_ANALYSES, NO_PAUSES, NO_RUN, NO_SUMMARY } from "../../data/sample";

interface Slice {
  start: number;
  end: number;
  node: number;
  track: number;
  correlation: number;
  launches: boolean;
}

/** A pause as Python tells it: by the name of what ended it. */
export type TracePause = [start: number, end: number, next: string, launch?: string | undefined];

/**
 * The profile that a text draws: every name is a node under the root.
 *
 * @param pauses those of GPU 0, as bragg/analyze/pauses.py finds them
 */
export function traceFromText(text: string, pauses: TracePause[] = []): ProfileData {
  const labels: string[] = [];
  const names = ["root"];
  const slices: Slice[] = [];
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const match = /^\s+(\d+)-(\d+) (.+?)(?: (->|<-)(\d+))?$/.exec(line);
    if (match === null) {
      labels.push(line.trim());
      continue;
    }
    const [, start, end, name, arrow, id] = match;
    if (!names.includes(name)) names.push(name);
    slices.push({
      start: Number(start),
      end: Number(end),
      node: names.indexOf(name),
      track: labels.length - 1,
      correlation: Number(id ?? 0),
      launches: arrow === "->",
    });
  }
  slices.sort((a, b) => a.track - b.track || a.start - b.start || b.end - a.end);
  const parts = { ...framesOf(names, slices, labels), ...tracksOf(labels), ...slicesOf(slices) };
  return { ...EMPTY, ...parts, pauses: pausesOf(pauses, names, slices, labels) };
}

function pausesOf(pauses: TracePause[], names: string[], slices: Slice[], labels: string[]): Pauses {
  const work = slices.filter((one) => labels[one.track].startsWith("stream"));
  if (work.length === 0) return NO_PAUSES;
  const rowOf = (name: string | undefined, isIt: (one: Slice) => boolean) =>
    slices.findIndex((one) => names[one.node] === name && isIt(one));
  const begins = Math.min(...work.map((one) => one.start));
  const span = Math.max(...work.map((one) => one.end)) - begins;
  return {
    devices: [{ process: 42, device: 0, begins, span, count: pauses.length }],
    last: Int32Array.from(pauses, ([start]) => slices.findIndex((one) => work.includes(one) && one.end === start)),
    next: Int32Array.from(pauses, ([, end, next]) => rowOf(next, (one) => one.start === end)),
    launch: Int32Array.from(pauses, ([, , , launch]) => rowOf(launch, () => true)),
  };
}

function framesOf(names: string[], slices: Slice[], labels: string[]): Pick<ProfileData, "frames" | "tree"> {
  const isKernel = names.map((_, node) => slices.some((one) => one.node === node && labels[one.track].startsWith("s")));
  const none = new Int32Array(names.length).fill(-1);
  return {
    frames: {
      kind: Uint8Array.from(isKernel, (is, node) =>
        node === 0 ? FrameKind.Root : is ? FrameKind.Kernel : FrameKind.Scope,
      ),
      name: names,
      label: names,
      file: names.map(() => ""),
      line: new Int32Array(names.length),
      device: none,
      library: none,
    },
    tree: {
      parent: Int32Array.from(names, (_, node) => (node === 0 ? -1 : 0)),
      frame: Int32Array.from(names.keys()),
      fold: none,
    },
  };
}

function tracksOf(labels: string[]): Pick<ProfileData, "tracks"> {
  const isStream = labels.map((label) => label.startsWith("stream"));
  return {
    tracks: {
      kind: Uint8Array.from(isStream, (is) => (is ? TrackKind.GpuStream : TrackKind.HostThread)),
      label: labels,
      process: new Int32Array(labels.length).fill(42),
      device: Int32Array.from(isStream, (is) => (is ? 0 : -1)),
    },
  };
}

function slicesOf(slices: Slice[]): Pick<ProfileData, "slices" | "flows"> {
  const pairs = slices.flatMap((one, source) =>
    slices.flatMap((other, target) =>
      one.launches && !other.launches && one.correlation === other.correlation ? [[source, target]] : [],
    ),
  );
  return {
    slices: {
      start: Float64Array.from(slices, (one) => one.start),
      duration: Float64Array.from(slices, (one) => one.end - one.start),
      node: Int32Array.from(slices, (one) => one.node),
      track: Int32Array.from(slices, (one) => one.track),
      correlation: Int32Array.from(slices, (one) => one.correlation),
    },
    flows: {
      source: Int32Array.from(pairs, ([source]) => source),
      target: Int32Array.from(pairs, ([, target]) => target),
    },
  };
}

const EMPTY = {
  title: "trace",
  run: NO_RUN,
  meta: {},
  summary: NO_SUMMARY,
  libraries: [],
  metrics: {},
  steady: null,
  opens: { isSteady: false, metric: null },
  kernels: [],
  percentiles: { kernel: {}, specialization: {} },
  ...NO_ANALYSES,
};
