// A profile as the views read it: plain columns, one typed array or list each. Rows are numbers.
// Python writes it (bragg/views/web/payload.py), decode.ts reads it; the names are the same on both sides.

import type { KernelText } from "./code";
import type { DifferenceData } from "./difference";
import type { Ranks } from "./ranks";
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
  Samples = 6,
}

export interface Summary {
  /** The answer, in sentences. */
  sentences: string[];
  /** What is known of the run and its machine: name and value. */
  facts: [string, string][];
  /** What must be known before the numbers are trusted, and what the profile does not hold. */
  lacks: string[];
  /** A few that stand large above. */
  numbers: { value: string; name: string; about: string }[];
  /** null: not known. */
  wall: Wall | null;
  /** What took most; rows, names and ranks are those of `bragg view --flat`. */
  tables: HotTable[];
}

/** The parts of the wall time, which add up, in the order of time. */
export interface Wall {
  wall_ns: number;
  text: string;
  parts: { name: string; duration_ns: number }[];
  /** Begin and end of the steady state, ns since the run began; null: not known, or no timeline. */
  steady: [number, number] | null;
}

export interface HotTable {
  title: string;
  /** What values are shares of. */
  about: string;
  metric: string;
  unit: string;
  rows: HotRow[];
  /** What is not listed; empty: nothing. */
  more: string;
}

export interface HotRow {
  name: string;
  full: string;
  value: number;
  /** Of the whole, 0 to 1. */
  share: number;
  /** Where most of it is; null: nowhere in the tree. */
  node: number | null;
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

/** What of a folded tree a node is that begins no excursion into a library. */
export enum Fold {
  /** A row of its own. */
  Own = -1,
  /** One more frame of the excursion around it. */
  Inside = -2,
  /** A part of the node above. */
  Part = -3,
}

/** Node 0 is the root; parents precede their children. */
export interface Tree {
  /** -1: the root. */
  parent: Int32Array;
  frame: Int32Array;
  /** What stands for a node where libraries are folded: the row of `libraries` whose excursion it begins, or `Fold`. */
  fold: Int32Array;
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
  /** What its variants have in common: the name without the specialization, or what all of them are called here. */
  family: string;
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

/** Of the launches of a kernel, ns, within 3.2 %; null: not all launches were kept. */
export type Percentiles = [p50: number | null, p95: number | null];

export interface Tracks {
  kind: Uint8Array;
  label: string[];
  process: Int32Array;
  /** -1: none. */
  device: Int32Array;
}

/** Ordered by track, then start. */
export interface Slices {
  /** ns since the run began. */
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

/** When GPUs waited, one device after another: between its first and its last work, while none of its streams ran. */
export interface Pauses {
  devices: PausesOfDevice[];
  /** Row of slices: the work at whose end each pause began. */
  last: Int32Array;
  /** Row of slices: the work with which it ended. */
  next: Int32Array;
  /** Row of slices: what launched that work; -1: not known. */
  launch: Int32Array;
}

export interface PausesOfDevice {
  process: number;
  device: number;
  /** When its first work began, ns since the run began. */
  begins: number;
  /** From the first to the last work. */
  span: number;
  /** How many of the pauses are its own. */
  count: number;
}

export interface Place {
  file: string;
  line: number;
  kernel: string;
  node: number | null;
}

/** What bragg/model/finding.py writes (`to_json`), and after it what bragg/views/web/findings.py adds. */
export interface Finding {
  rule: string;
  severity: "note" | "warning" | "error";
  message: string;
  /** What to do about it; may be empty. */
  hint: string;
  /** null: of the whole run. */
  node: number | null;
  kernel?: string;
  file?: string;
  line?: number;
  evidence?: { name: string; value: number; unit: string }[];
  places?: Place[];
  gain?: {
    wall_ns: number;
    of_ns: number;
    limit: string;
    is_once: boolean;
    share: number;
  };
  confidence: "heuristic" | "likely" | "proven";
  details?: [name: string, text: string][];
  gainText: string;
  /** What the gain is a share of. */
  gainOf: string;
  /** File and line, short; empty: not known. */
  at: string;
  /** The evidence in words. */
  numbers: [name: string, value: string][];
  /** Whether it gains enough to be shown at once. */
  isWorth: boolean;
  /** Row of slices: where the timeline shows it; null: it does not. */
  slice: number | null;
}

/** What `bragg analyze` says. */
export interface Findings {
  /** What bounds the program; empty: not known. */
  sentence: string;
  /** Of the wall time; they add up to 1 where a timeline tells. */
  parts: { name: string; share: number; is_gpu: boolean }[];
  leastGain: number;
  /** Why rules could find nothing at all; empty: they could. */
  nothing: string;
  /** What was looked at and found fine. */
  fine: string[];
  /** What could not be judged, and the command that records what it misses; empty: none does. */
  skipped: { missing: string; command: string; rules: string[] }[];
  /** The one that gains most first. */
  rows: Finding[];
}

export interface ProfileData {
  title: string;
  /** What was run, how long it took, and when it began, ms since 1970; empty or null: not known. */
  run: { command: string; duration: string; startedMs: number | null };
  meta: Record<string, unknown>;
  summary: Summary;
  frames: Frames;
  libraries: string[];
  tree: Tree;
  metrics: Record<string, Metric>;
  /** The metrics of the steady state, without a GPU of what is no import; null: they are not known. */
  steady: Record<string, Metric> | null;
  /** What is shown first: of the steady state or of all, and the metric; null: no time was recorded. */
  opens: { isSteady: boolean; metric: string | null };
  /** The one with most time first. */
  kernels: KernelRow[];
  /** By `family`, and by the name of the frame. */
  percentiles: Record<"kernel" | "specialization", Record<string, Percentiles>>;
  tracks: Tracks;
  slices: Slices;
  flows: Flows;
  pauses: Pauses;
  /** null: nobody asked, as of comparisons. */
  findings: Findings | null;
  /** Text of source files by the name that frames carry. */
  sources: Record<string, string>;
  code: KernelText[];
  roofline: RooflineData | null;
  difference: DifferenceData | null;
  /** The ranks of its job compared; null: it is no rank, or nobody asked. */
  ranks: Ranks | null;
}
