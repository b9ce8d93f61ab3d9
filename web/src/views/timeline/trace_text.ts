// Traces as text, for tests; the same as tests/support/traces.py.
//
//   thread 1
//     0-10 step
//     2-4 cuLaunchKernel ->5
//   stream 7
//     6-9 matmul <-5

import { FrameKind, type ProfileData, TrackKind } from "../../data/profile";

interface Slice {
  start: number;
  end: number;
  node: number;
  track: number;
  correlation: number;
  launches: boolean;
}

/** The profile that a text draws: every name is a node under the root. */
export function traceFromText(text: string): ProfileData {
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
  return { ...EMPTY, ...framesOf(names, slices, labels), ...tracksOf(labels), ...slicesOf(slices) };
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
    tree: { parent: Int32Array.from(names, (_, node) => (node === 0 ? -1 : 0)), frame: Int32Array.from(names.keys()) },
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
  meta: {},
  summary: { sentences: [], facts: [], lacks: [] },
  libraries: [],
  metrics: {},
  mainMetric: null,
  kernels: [],
  durations: { frame: new Int32Array(0), bucket: new Int32Array(0), count: new Float64Array(0) },
  findings: [],
  sources: {},
  code: [],
  roofline: null,
  difference: null,
};
