import type { ProfileData } from "../data/profile";
import { DIFFERENCE } from "./diff";
import { FINDINGS } from "./findings";
import { FlameView, flameLack } from "./flame/view";
import { KernelsView, kernelsLack } from "./kernels/view";
import { RANKS } from "./ranks";
import { ROOFLINE } from "./roofline";
import { SOURCE } from "./source";
import { SummaryView } from "./summary/view";
import { TIMELINE } from "./timeline";
import type { ViewRow } from "./view";

const FLAME_KEYS: [string, string][] = [
  ["← ↑ → ↓", "a neighbour"],
  ["Enter", "zoom to the box that is chosen"],
  ["Esc", "zoom out a level"],
  ["0", "everything"],
  ["/", "search"],
  ["b", "bottom up or top down"],
  ["s", "sandwich: callers above the chosen name, callees below it"],
  ["l", "fold libraries"],
  ["c", "colour by kind or by forward and backward"],
];

const ONE_PROFILE: Record<string, ViewRow> = {
  summary: { label: "Summary", view: SummaryView, needs: () => "", shows: "", command: "", sketch: [], keys: [] },
  findings: FINDINGS,
  flame: {
    label: "Flame",
    view: FlameView,
    needs: flameLack,
    shows: "The call tree: who called what, as wide as the time that it took.",
    command: "bragg run SCRIPT",
    sketch: [
      ["host", 0, 0, 160, 15],
      ["host", 0, 18, 110, 15],
      ["host", 113, 18, 40, 15],
      ["gpu", 0, 36, 70, 15],
      ["gpu", 73, 36, 30, 15],
      ["gpu", 113, 36, 26, 15],
    ],
    keys: FLAME_KEYS,
  },
  kernels: {
    label: "Kernels",
    view: KernelsView,
    needs: kernelsLack,
    shows: "A table of kernels: time, launches, percentiles, launch configurations and occupancy.",
    command: "bragg run SCRIPT",
    sketch: [
      ["line", 0, 0, 160, 9],
      ["gpu", 0, 15, 140, 9],
      ["gpu", 0, 29, 90, 9],
      ["gpu", 0, 43, 52, 9],
      ["gpu", 0, 57, 20, 9],
    ],
    keys: [
      ["/", "filter"],
      ["Enter", "open a row"],
    ],
  },
  timeline: TIMELINE,
  source: SOURCE,
  roofline: ROOFLINE,
};

const TWO_PROFILES: Record<string, ViewRow> = {
  difference: DIFFERENCE,
  summary: ONE_PROFILE.summary,
  flame: ONE_PROFILE.flame,
};

/** The views in the order of the tabs, by the name in the address. */
export function viewsOf(data: ProfileData): Record<string, ViewRow> {
  if (data.difference) return TWO_PROFILES;
  if (!data.ranks) return ONE_PROFILE;
  const { summary, ...others } = ONE_PROFILE;
  return { summary, ranks: RANKS, ...others };
}
