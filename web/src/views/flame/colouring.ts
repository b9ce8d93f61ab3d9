// What colour each row has.

import type { FrameKind, Metric, ProfileData } from "../../data/profile";
import { heatColour, KIND_NAMES, kindColour, LIBRARY, PASSES, type Theme } from "../../ui/colours";
import { valueText } from "../../ui/numbers";
import type { Forest } from "./forest";
import { kindOfRow } from "./names";
import { Phase, phases } from "./phase";

/** `kind`, `phase`, or the name of a metric. */
export type ColourBy = string;

/** A legend: colours and what they mean. */
export type Legend = [string, string][];

const PASS_NAMES: [Phase, string][] = [
  [Phase.Forward, "forward"],
  [Phase.Backward, "backward"],
  [Phase.Neither, "neither"],
];

/** The colour of a row. */
export function colouring(data: ProfileData, forest: Forest, by: ColourBy, theme: Theme): (row: number) => string {
  const n_frames = data.frames.kind.length;
  if (by === "phase") {
    const ofNode = phases(data);
    return (row) => PASSES[ofNode[forest.node[row]]][theme];
  }
  const metric = data.metrics[by];
  if (metric !== undefined) {
    const values = ofRows(data, forest, metric);
    const most = largest(values);
    return (row) => heatColour(values[row] > 0 ? values[row] / most : 0, theme);
  }
  return (row) => {
    const key = forest.key[row];
    return key >= n_frames ? LIBRARY[theme] : kindColour(data.frames.kind[key] as FrameKind, theme);
  };
}

/** Own values of a metric by row: added up, or of properties the largest; NaN: none. */
export function ofRows(data: ProfileData, forest: Forest, metric: Metric): Float64Array {
  const found = new Float64Array(forest.key.length).fill(Number.NaN);
  for (let node = 0; node < data.tree.parent.length; node++) {
    const row = forest.rowOfNode[node];
    const value = metric.own[node];
    if (row < 0 || Number.isNaN(value)) continue;
    const before = found[row];
    if (Number.isNaN(before)) found[row] = value;
    else found[row] = metric.kind === "property" ? Math.max(before, value) : before + value;
  }
  return found;
}

/** 0 where there is no value. */
function largest(values: Float64Array): number {
  return values.reduce((one, other) => (other > one ? other : one), 0);
}

/** What the colours mean. */
export function legendOf(data: ProfileData, forest: Forest, by: ColourBy, theme: Theme): Legend {
  if (by === "phase") return PASS_NAMES.map(([phase, name]) => [PASSES[phase][theme], name]);
  const metric = data.metrics[by];
  if (metric === undefined) return kindLegend(data, forest, theme);
  const most = valueText(largest(ofRows(data, forest, metric)), metric.unit);
  return [
    [heatColour(0, theme), "none"],
    [heatColour(1, theme), `${by} of its own, up to ${most}`],
  ];
}

function kindLegend(data: ProfileData, forest: Forest, theme: Theme): Legend {
  const kinds = new Set<FrameKind>();
  for (let row = 1; row < forest.key.length; row++) kinds.add(kindOfRow(data, forest, row));
  return [...kinds].sort((one, other) => one - other).map((kind) => [kindColour(kind, theme), KIND_NAMES[kind]]);
}
