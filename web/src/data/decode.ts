// Reads what bragg/views/web/payload.py wrote: gzip of the size of the header, the header (JSON), and columns.

import type { Metric, PausesOfDevice, ProfileData } from "./profile";

/** Where a column stands behind the header. */
interface Packed {
  at: number;
  size: number;
  n: number;
}
type Integers = Packed & { code: "varint" | "delta" };
type Column = Integers | (Packed & { code: "raw"; type: "u8" | "f64" });
interface Sparse {
  code: "sparse";
  n: number;
  rows: Integers;
  values: Column;
}

type PackedMetrics = Record<string, Omit<Metric, "own"> & { own: Sparse }>;

/** The header as it is written; what is not named here is written as it is read. */
interface Header
  extends Omit<
    ProfileData,
    "frames" | "libraries" | "tree" | "metrics" | "steady" | "tracks" | "slices" | "flows" | "pauses"
  > {
  version: number;
  frames: {
    kind: Column;
    names: string[];
    labels: Record<string, string>;
    files: string[];
    file: Column;
    line: Column;
    device: Column;
    libraries: string[];
    library: Column;
  };
  tree: { parent: Column; frame: Column; fold: Column };
  metrics: PackedMetrics;
  steady: PackedMetrics | null;
  tracks: { kind: Column; label: string[]; process: Column; device: Column };
  slices: { start: Column; duration: Column; node: Column; track: Column; correlation: Column };
  flows: { source: Column; target: Column };
  pauses: { devices: PausesOfDevice[]; next: Column; back: Column; launch: Column };
}

const VERSION = 4;

/** The profile in a gzip-packed payload. */
export async function decode(packed: Uint8Array<ArrayBuffer>): Promise<ProfileData> {
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return read(new Uint8Array(await new Response(unpacked).arrayBuffer()));
}

/** Bytes from base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The profile in an unpacked payload. */
export function read(bytes: Uint8Array<ArrayBuffer>): ProfileData {
  const headerSize = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headerSize))) as Header;
  if (header.version !== VERSION) throw new Error(`this page reads payloads of version ${VERSION}`);
  const columns = new Columns(bytes.subarray(4 + headerSize));
  const { version: _, frames, tree, metrics, steady, tracks, slices, flows, pauses, ...same } = header;
  const files = columns.int32(frames.file);
  const next = columns.int32(pauses.next);
  return {
    ...same,
    frames: {
      kind: columns.uint8(frames.kind),
      name: frames.names,
      label: frames.names.map((name, row) => frames.labels[row] ?? name),
      file: Array.from(files, (row) => frames.files[row]),
      line: columns.int32(frames.line),
      device: columns.int32(frames.device),
      library: columns.int32(frames.library),
    },
    libraries: frames.libraries,
    tree: {
      parent: columns.int32(tree.parent),
      frame: columns.int32(tree.frame),
      fold: columns.int32(tree.fold),
    },
    metrics: columns.metrics(metrics),
    steady: steady && columns.metrics(steady),
    tracks: {
      kind: columns.uint8(tracks.kind),
      label: tracks.label,
      process: columns.int32(tracks.process),
      device: columns.int32(tracks.device),
    },
    slices: {
      start: columns.float64(slices.start),
      duration: columns.float64(slices.duration),
      node: columns.int32(slices.node),
      track: columns.int32(slices.track),
      correlation: columns.int32(slices.correlation),
    },
    flows: { source: columns.int32(flows.source), target: columns.int32(flows.target) },
    pauses: {
      devices: pauses.devices,
      last: columns.int32(pauses.back).map((back, row) => next[row] - back),
      next,
      launch: columns.int32(pauses.launch),
    },
  };
}

class Columns {
  constructor(private readonly bytes: Uint8Array<ArrayBuffer>) {}

  uint8(column: Column): Uint8Array {
    return this.fill(column, new Uint8Array(column.n));
  }

  int32(column: Column): Int32Array {
    return this.fill(column, new Int32Array(column.n));
  }

  float64(column: Column): Float64Array {
    return this.fill(column, new Float64Array(column.n));
  }

  /** NaN where there is no value. */
  sparse(column: Sparse): Float64Array {
    const found = new Float64Array(column.n).fill(Number.NaN);
    const rows = this.int32(column.rows);
    const values = this.float64(column.values);
    for (let i = 0; i < rows.length; i++) found[rows[i]] = values[i];
    return found;
  }

  metrics(packed: PackedMetrics): Record<string, Metric> {
    const read = Object.entries(packed).map(([name, metric]) => [name, { ...metric, own: this.sparse(metric.own) }]);
    return Object.fromEntries(read);
  }

  private fill<T extends Uint8Array | Int32Array | Float64Array>(column: Column, into: T): T {
    const bytes = this.bytes.subarray(column.at, column.at + column.size);
    if (column.code !== "raw") fillIntegers(bytes, column.code === "delta", into);
    else if (column.type === "u8") into.set(bytes);
    else into.set(new Float64Array(bytes.slice().buffer));
    return into;
  }
}

/** Zigzag varints. Up to 53 bits, so by multiplication: shifts would end at 32. */
function fillIntegers(bytes: Uint8Array, isDelta: boolean, into: Uint8Array | Int32Array | Float64Array): void {
  let at = 0;
  let before = 0;
  for (let i = 0; i < into.length; i++) {
    let byte = bytes[at++];
    let value = byte & 0x7f;
    for (let place = 128; byte >= 0x80; place *= 128) {
      byte = bytes[at++];
      value += (byte & 0x7f) * place;
    }
    const signed = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    before = isDelta ? before + signed : signed;
    into[i] = before;
  }
}
