import type { ProfileData } from "../data/profile";
import { DIFFERENCE } from "./diff";
import { FINDINGS } from "./findings";
import { FlameView, flameLack } from "./flame/view";
import { KernelsView, kernelsLack } from "./kernels/view";
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
  ["l", "fold libraries"],
  ["c", "colour by kind or by forward and backward"],
];

const ONE_PROFILE: Record<string, ViewRow> = {
  summary: { label: "Summary", view: SummaryView, needs: () => "", keys: [] },
  findings: FINDINGS,
  flame: { label: "Flame", view: FlameView, needs: flameLack, keys: FLAME_KEYS },
  kernels: {
    label: "Kernels",
    view: KernelsView,
    needs: kernelsLack,
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
  return data.difference ? TWO_PROFILES : ONE_PROFILE;
}
