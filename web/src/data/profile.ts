// A profile as the views read it: plain columns, one typed array or list each. Rows are numbers.
// Python writes it (bragg/views/web/payload.py), decode.ts reads it; the names are the same on both sides.

import type { KernelText } from "./code";
import type { DifferenceData } from "./difference";
import type { RooflineData } from "./roofline";

/** What a frame stands for; the numbers of the capture format. */
export enum FrameKind {
  Root = 0,
  Scope = 1,
  State = 2,
  Python = 3,
  Native = 4,
  Operator = 5,
  GpuApi = 6,
  Kernel = 7,
  Line = 8,
  Marker = 9,
  Memory = 10,
}

/** What a track shows. */
export enum TrackKind {
  HostThread = 1,
  GpuStream = 2,
  Counter = 3,
  Ranges = 4,
  DeviceUnit = 5,
}

export interface Summary {
  /** The answer, in sentences. */
  sentences: string[];
  /** What is known of the run and its machine: name and value. */
  facts: [string, string][];
  /** What must be known before the numbers are trusted, and what the profile does not hold. */
  lacks: string[];
}

/** Things that can stand in a call path, each once. */
export interface Frames {
  kind: Uint8Array;
  /** As the program gave it. May hold anything: HTML, NUL, text from right to left. */
  name: string[];
  /** For people: demangled and short. */
  label: string[];
  /** Empty: unknown. */
  file: string[];
  /** From 1; 0: unknown. */
  line: Int32Array;
  /** -1: none. */
  device: Int32Array;
  /** Row of `ProfileData.libraries` that the frame's file belongs to; -1: the user's own code, or no code. */
  library: Int32Array;
}

/** Node 0 is the root; parents precede their children. */
export interface Tree {
  /** -1: the root. */
  parent: Int32Array;
  frame: Int32Array;
}

export type MetricKind = "inclusive" | "exclusive" | "property";

export interface Metric {
  /** `ns`, `B`, `1` (a count), or what the program gave. */
  unit: string;
  kind: MetricKind;
  /** Of each node without its descendants; NaN: none. */
  own: Float64Array;
}

/** How a kernel was launched; null: not known. */
export interface Configuration {
  /** Launches. */
  count: number;
  grid: [number, number, number];
  block: [number, number, number];
  /** null: no clusters. */
  cluster: [number, number, number] | null;
  registers: number;
  shared_bytes: number;
  /** Spills and stack. */
  local_bytes_per_thread: number;
  /** Share of a multiprocessor's warps that can be resident at once, 0 to 1; null: the device is unknown. */
  occupancy: number | null;
  /** What keeps it from being more: registers, shared memory, threads or blocks; empty: nothing, or unknown. */
  occupancy_limit: string;
}

/** A kernel, over all call paths; null: not known. */
export interface KernelRow {
  /** Row of `frames`. */
  frame: number;
  /** Its name without the specialization. */
  base: string;
  time_ns: number;
  /** Launches. */
  count: number;
  /** The longest launch. */
  max_ns: number | null;
  flops: number | null;
  bytes: number | null;
  /** Time that its flops and bytes take at least; null: no flops, no bytes, or a device without known peaks. */
  roof_ns: number | null;
  /** The roof above it. */
  bound: "compute" | "memory" | null;
  configurations: Configuration[];
}

/** How long launches took: a histogram for each kernel, by frame and bucket; see views/kernels/durations.ts. */
export interface Durations {
  frame: Int32Array;
  bucket: Int32Array;
  count: Float64Array;
}

export interface Tracks {
  kind: Uint8Array;
  label: string[];
  process: Int32Array;
  /** -1: none. */
  device: Int32Array;
}

/** Ordered by track, then start. */
export interface Slices {
  /** ns since the first slice. */
  start: Float64Array;
  duration: Float64Array;
  node: Int32Array;
  track: Int32Array;
  /** Shared by a launch and what it caused; 0: none. */
  correlation: Int32Array;
}

/** Arrows from launches to what they caused: rows of slices. */
export interface Flows {
  source: Int32Array;
  target: Int32Array;
}

export interface Finding {
  rule: string;
  severity: "note" | "warning" | "error";
  message: string;
  /** What to do about it; may be empty. */
  hint: string;
  /** null: of the whole run. */
  node: number | null;
}

export interface ProfileData {
  title: string;
  meta: Record<string, unknown>;
  summary: Summary;
  frames: Frames;
  libraries: string[];
  tree: Tree;
  metrics: Record<string, Metric>;
  /** What says where the time went; null: no time was recorded. */
  mainMetric: string | null;
  /** The one with most time first. */
  kernels: KernelRow[];
  durations: Durations;
  tracks: Tracks;
  slices: Slices;
  flows: Flows;
  findings: Finding[];
  /** Text of source files by the name that frames carry. */
  sources: Record<string, string>;
  code: KernelText[];
  roofline: RooflineData | null;
  difference: DifferenceData | null;
}
