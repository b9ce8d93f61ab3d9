// Profiles for tests, drawn as text: two spaces a level, a kind and a name, and own values.

import { Fold, FrameKind, type Pauses, type ProfileData, type Summary } from "./profile";

const KINDS: Record<string, FrameKind> = {
  scope: FrameKind.Scope,
  python: FrameKind.Python,
  library: FrameKind.Python,
  operator: FrameKind.Operator,
  kernel: FrameKind.Kernel,
};

export const NO_SUMMARY: Summary = { sentences: [], facts: [], lacks: [], numbers: [], wall: null, tables: [] };
export const NO_RUN = { command: "", duration: "", startedMs: null };
export const NO_ANALYSES = {
  findings: null,
  sources: {},
  code: [],
  roofline: null,
  difference: null,
  ranks: null,
};
export const NO_PAUSES: Pauses = {
  devices: [],
  last: new Int32Array(0),
  next: new Int32Array(0),
  launch: new Int32Array(0),
};

/**
 * The profile that a text draws. A line is `kind name value`; libraries are `library package.function`. Equal kinds and
 * names are one frame; the values are the metric `gpu_time`, ns.
 */
export function profileFromText(text: string): ProfileData {
  const lines = text.split("\n").filter((line) => line.trim());
  const left = Math.min(...lines.map((line) => line.search(/\S/)));
  const parent = [-1];
  const names = ["root"];
  const kinds: FrameKind[] = [FrameKind.Root];
  const libraries: string[] = [];
  const library = [-1];
  const frame = [0];
  const own = [Number.NaN];
  const fold: number[] = [Fold.Own];
  const open: number[] = [0];
  for (const line of lines) {
    const depth = (line.search(/\S/) - left) / 2 + 1;
    const [kind, name, value] = line.trim().split(" ");
    const known = names.findIndex((other, row) => other === name && kinds[row] === KINDS[kind]);
    frame.push(known < 0 ? names.length : known);
    if (known < 0) {
      const owner = kind === "library" ? name.split(".")[0] : "";
      if (owner && !libraries.includes(owner)) libraries.push(owner);
      names.push(name);
      kinds.push(KINDS[kind]);
      library.push(libraries.indexOf(owner));
    }
    open.length = depth;
    const isLibrary = kind === "library";
    const isInside = isLibrary && fold[open[depth - 1]] !== Fold.Own;
    fold.push(isInside ? Fold.Inside : isLibrary ? libraries.indexOf(name.split(".")[0]) : Fold.Own);
    parent.push(open[depth - 1]);
    open.push(parent.length - 1);
    own.push(value ? Number(value) : Number.NaN);
  }
  const none = () => new Int32Array(0);
  return {
    title: "sample",
    run: NO_RUN,
    meta: {},
    summary: NO_SUMMARY,
    frames: {
      kind: Uint8Array.from(kinds),
      name: names,
      label: names,
      file: names.map((name, row) => (kinds[row] === FrameKind.Python ? `${name}.py` : "")),
      line: new Int32Array(names.length),
      device: new Int32Array(names.length).fill(-1),
      library: Int32Array.from(library),
    },
    libraries,
    tree: { parent: Int32Array.from(parent), frame: Int32Array.from(frame), fold: Int32Array.from(fold) },
    metrics: { gpu_time: { unit: "ns", kind: "inclusive", own: Float64Array.from(own) } },
    steady: null,
    opens: { isSteady: false, metric: "gpu_time" },
    kernels: [],
    percentiles: { kernel: {}, specialization: {} },
    tracks: { kind: new Uint8Array(0), label: [], process: none(), device: none() },
    slices: {
      start: new Float64Array(0),
      duration: new Float64Array(0),
      node: none(),
      track: none(),
      correlation: none(),
    },
    flows: { source: none(), target: none() },
    pauses: NO_PAUSES,
    ...NO_ANALYSES,
  };
}
