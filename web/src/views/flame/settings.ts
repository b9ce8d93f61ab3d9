// What a reader chose of a flame graph, and how an address says it.

import type { ProfileData } from "../../data/profile";
import type { Direction } from "./forest";

/** Of which time the widths are. */
export type Part = "steady" | "all";

export interface Settings {
  part: Part;
  /** What widths mean. */
  metric: string;
  direction: Direction;
  /** Whether library frames are put together. */
  folds: boolean;
  /** `kind`, `phase`, or the name of a metric. */
  colour: string;
  query: string;
}

const PARTS: Part[] = ["steady", "all"];
const DIRECTIONS: Direction[] = ["down", "up", "sandwich"];

/** The profile with the metrics of a part of its run. */
export function ofPart(data: ProfileData, part: Part): ProfileData {
  return part === "steady" && data.steady ? { ...data, metrics: data.steady } : data;
}

/** Metrics that add up along call paths and are not zero everywhere. */
export function widthMetrics(data: ProfileData): string[] {
  return Object.entries(data.metrics)
    .filter(([, metric]) => metric.kind !== "property" && metric.own.some((value) => value > 0))
    .map(([name]) => name);
}

/** What is shown until something else is chosen. */
export function usualSettings(data: ProfileData): Settings {
  return {
    part: data.opens.isSteady ? "steady" : "all",
    metric: data.opens.metric ?? widthMetrics(data)[0],
    direction: "down",
    folds: data.libraries.some((name) => name !== ""),
    colour: "kind",
    query: "",
  };
}

/** The settings of an address; what is missing or wrong there is as usual. */
export function parseSettings(state: Record<string, string>, data: ProfileData): Settings {
  const usual = usualSettings(data);
  const part = data.steady ? (PARTS.find((name) => name === state.part) ?? usual.part) : "all";
  const shown = ofPart(data, part);
  const colours = ["phase", ...Object.keys(shown.metrics)];
  const metrics = widthMetrics(shown);
  const metric = metrics.find((name) => name === state.metric) ?? metrics.find((name) => name === usual.metric);
  return {
    part,
    metric: metric ?? metrics[0],
    direction: DIRECTIONS.find((name) => name === state.direction) ?? "down",
    folds: state.libraries ? state.libraries === "true" : usual.folds,
    colour: colours.find((name) => name === state.colour) ?? "kind",
    query: state.q ?? "",
  };
}

/** What an address says of settings: what is not as usual. */
export function settingsState(settings: Settings, data: ProfileData): Record<string, string> {
  const usual = usualSettings(data);
  const unless = (isUsual: boolean, text: string) => (isUsual ? "" : text);
  return {
    part: unless(settings.part === usual.part, settings.part),
    metric: unless(settings.metric === usual.metric, settings.metric),
    direction: unless(settings.direction === "down", settings.direction),
    libraries: unless(settings.folds === usual.folds, String(settings.folds)),
    colour: unless(settings.colour === "kind", settings.colour),
    q: settings.query,
  };
}
