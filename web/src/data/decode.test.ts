import { describe, expect, it } from "vitest";
import { read } from "./decode";

/** Zigzag varints, as Python writes them. */
function varints(values: number[], isDelta = false): number[] {
  const bytes: number[] = [];
  let before = 0;
  for (const value of values) {
    const step = isDelta ? value - before : value;
    before = value;
    let rest = step < 0 ? -2 * step - 1 : 2 * step;
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
    bytes.push(rest);
  }
  return bytes;
}

/** A payload of a root and a kernel with two slices. */
function payload(version = 4): Uint8Array<ArrayBuffer> {
  const bytes: number[] = [];
  const place = (n: number, added: number[]) => {
    const at = bytes.length;
    bytes.push(...added);
    return { n, at, size: added.length };
  };
  const integers = (...values: number[]) => ({ code: "varint", ...place(values.length, varints(values)) });
  const delta = (...values: number[]) => ({ code: "delta", ...place(values.length, varints(values, true)) });
  const raw = (type: string, n: number, added: Uint8Array) => ({ code: "raw", type, ...place(n, [...added]) });
  const doubles = (...values: number[]) => raw("f64", values.length, new Uint8Array(Float64Array.from(values).buffer));
  const header = {
    version,
    title: "run",
    frames: {
      kind: raw("u8", 2, Uint8Array.of(0, 7)),
      names: ["root", "_Z1k"],
      labels: { 1: "k" },
      files: ["", "a.py"],
      file: integers(0, 1),
      line: integers(0, 12),
      device: integers(-1, 0),
      libraries: [""],
      library: integers(-1, -1),
    },
    tree: { parent: delta(-1, 0), frame: integers(0, 1), fold: integers(-1, 0) },
    steady: null,
    metrics: {
      time: { unit: "ns", kind: "inclusive", own: { code: "sparse", n: 2, rows: delta(1), values: doubles(1.5) } },
    },
    tracks: { kind: raw("u8", 1, Uint8Array.of(2)), label: ["GPU"], process: integers(1), device: integers(0) },
    slices: {
      start: delta(0, 2 ** 50 + 1),
      duration: integers(5, 2 ** 40),
      node: integers(1, 1),
      track: delta(0, 0),
      correlation: delta(3, 2),
    },
    flows: { source: delta(), target: delta() },
    pauses: {
      devices: [{ process: 1, device: 0, begins: 0, span: 9, count: 1 }],
      next: delta(1),
      back: integers(1),
      launch: delta(-1),
    },
  };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const found = new Uint8Array(4 + text.length + bytes.length);
  new DataView(found.buffer).setUint32(0, text.length, true);
  found.set(text, 4);
  found.set(bytes, 4 + text.length);
  return found;
}

describe("a payload", () => {
  it("gives back columns of every kind", () => {
    const { frames, tree, metrics, slices, pauses, title } = read(payload());
    expect(title).toBe("run");
    expect([frames.label, frames.file, [...frames.device]]).toEqual([
      ["root", "k"],
      ["", "a.py"],
      [-1, 0],
    ]);
    expect([...tree.parent]).toEqual([-1, 0]);
    expect([...metrics.time.own]).toEqual([Number.NaN, 1.5]);
    expect([...slices.correlation]).toEqual([3, 2]);
    expect([pauses.devices[0].span, ...pauses.last, ...pauses.next, ...pauses.launch]).toEqual([9, 0, 1, -1]);
  });
  it("holds integers of more than 32 bits", () => {
    const { slices } = read(payload());
    expect([...slices.start]).toEqual([0, 2 ** 50 + 1]);
    expect([...slices.duration]).toEqual([5, 2 ** 40]);
  });
  it("of another version is refused", () => {
    expect(() => read(payload(1))).toThrow("reads payloads of version 4");
  });
});
