// Kernels put together by what they are called or by who launched them.

import { type Configuration, FrameKind, type KernelRow, type Percentiles, type ProfileData } from "../../data/profile";

export const GROUPINGS = ["kernel", "specialization", "module"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** A row of the table; null: not known. */
export interface Row {
  /** What identifies it in its grouping. */
  name: string;
  label: string;
  /** Kernels that it is the sum of, rows of `frames`. */
  frames: number[];
  time_ns: number;
  /** Of the time of all rows, 0 to 1. */
  share: number;
  count: number;
  mean_ns: number | null;
  p50_ns: number | null;
  p95_ns: number | null;
  max_ns: number | null;
  flops_per_s: number | null;
  bytes_per_s: number | null;
  util: number | null;
  bound: string;
  /** The most frequent first. */
  configurations: Configuration[];
}

const NS_PER_S = 1e9;
const UNKNOWN: Percentiles = [null, null];
const UNKNOWN_MODULE = "(not called from Python)";

export function rowsOf(data: ProfileData, grouping: Grouping): Row[] {
  const rows = grouping === "module" ? byModule(data) : byName(data, grouping);
  const total = rows.reduce((sum, row) => sum + row.time_ns, 0);
  for (const row of rows) row.share = total ? row.time_ns / total : 0;
  return rows;
}

function byName(data: ProfileData, grouping: "kernel" | "specialization"): Row[] {
  const groups = new Map<string, KernelRow[]>();
  for (const kernel of data.kernels) {
    const name = grouping === "kernel" ? kernel.family : data.frames.name[kernel.frame];
    const group = groups.get(name);
    if (group) group.push(kernel);
    else groups.set(name, [kernel]);
  }
  const known = data.percentiles[grouping];
  return [...groups].map(([name, kernels]) => sumOf(data, known[name] ?? UNKNOWN, name, kernels));
}

/** The variants that a row is the sum of, the one with most time first; none: it is one. */
export function variantsOf(data: ProfileData, row: Row, grouping: Grouping): Row[] {
  if (grouping !== "kernel" || row.frames.length < 2) return [];
  const variants = rowsOf(data, "specialization").filter((one) => row.frames.includes(one.frames[0]));
  return variants.sort((one, other) => other.time_ns - one.time_ns);
}

function sumOf(data: ProfileData, [p50_ns, p95_ns]: Percentiles, name: string, kernels: KernelRow[]): Row {
  const sum = (value: (kernel: KernelRow) => number) => kernels.reduce((added, kernel) => added + value(kernel), 0);
  const frames = kernels.map((kernel) => kernel.frame);
  const time_ns = sum((kernel) => kernel.time_ns);
  const count = sum((kernel) => kernel.count);
  const longest = kernels.map((kernel) => kernel.max_ns ?? Number.NaN);
  const max_ns = longest.some(Number.isNaN) ? null : Math.max(...longest);
  /** Where it is known of all of them. */
  const perTime = (of: (kernel: KernelRow) => number | null, scale = 1) =>
    kernels.every((kernel) => of(kernel) !== null) ? (sum((kernel) => of(kernel) ?? 0) / time_ns) * scale : null;
  return {
    name,
    label: data.frames.name[frames[0]] === name ? data.frames.label[frames[0]] : name,
    frames,
    time_ns,
    share: 0,
    count,
    mean_ns: count ? time_ns / count : null,
    p50_ns,
    p95_ns,
    max_ns,
    flops_per_s: perTime((kernel) => kernel.flops, NS_PER_S),
    bytes_per_s: perTime((kernel) => kernel.bytes, NS_PER_S),
    util: perTime((kernel) => kernel.roof_ns),
    bound: [...new Set(kernels.map((kernel) => kernel.bound).filter(Boolean))].join(", "),
    configurations: kernels.flatMap((kernel) => kernel.configurations).sort((one, other) => other.count - one.count),
  };
}

/** GPU time by the module of PyTorch that is nearest above, else by the file of the user's own code. */
function byModule(data: ProfileData): Row[] {
  const { tree, frames, metrics } = data;
  const time = metrics.gpu_time?.own;
  if (time === undefined) return [];
  const count = metrics.gpu_count?.own;
  const modules = modulesOf(data);
  const rows = new Map<string, Row>();
  const frameSets = new Map<Row, Set<number>>();
  for (let node = 0; node < time.length; node++) {
    const kind = frames.kind[tree.frame[node]];
    if (!(time[node] > 0) || (kind !== FrameKind.Kernel && kind !== FrameKind.Memory)) continue;
    const name = moduleAbove(data, modules, node) || fileAbove(data, node);
    const row = rows.get(name) ?? emptyRow(name);
    rows.set(name, row);
    row.time_ns += time[node];
    row.count += count?.[node] > 0 ? count[node] : 0;
    const set = frameSets.get(row) ?? new Set();
    frameSets.set(row, set.add(tree.frame[node]));
  }
  for (const [row, set] of frameSets) {
    row.frames = [...set];
    row.mean_ns = row.count ? row.time_ns / row.count : null;
  }
  return [...rows.values()];
}

/** Path and class of each frame that is a module of PyTorch; empty of the others. */
function modulesOf(data: ProfileData): string[] {
  const described = (data.meta.attributes ?? {}) as Record<string, Record<string, unknown> | undefined>;
  return data.frames.name.map((name, frame) => {
    const className = data.frames.kind[frame] === FrameKind.Scope ? described[name]?.module : undefined;
    if (!className) return "";
    return className === name ? name : `${name} (${className})`;
  });
}

function moduleAbove({ tree }: ProfileData, modules: string[], node: number): string {
  let above = tree.parent[node];
  while (above >= 0 && !modules[tree.frame[above]]) above = tree.parent[above];
  return above >= 0 ? modules[tree.frame[above]] : "";
}

function fileAbove(data: ProfileData, node: number): string {
  const { tree, frames } = data;
  let library = "";
  for (let above = tree.parent[node]; above >= 0; above = tree.parent[above]) {
    const frame = tree.frame[above];
    if (frames.kind[frame] !== FrameKind.Python || !frames.file[frame]) continue;
    if (frames.library[frame] < 0) return frames.file[frame].split("/").slice(-2).join("/");
    library ||= data.libraries[frames.library[frame]];
  }
  return library || UNKNOWN_MODULE;
}

function emptyRow(name: string): Row {
  const unknown = { p50_ns: null, p95_ns: null, max_ns: null, flops_per_s: null, bytes_per_s: null, util: null };
  const counted = { time_ns: 0, share: 0, count: 0, mean_ns: null };
  return { name, label: name, frames: [], ...counted, ...unknown, bound: "", configurations: [] };
}
