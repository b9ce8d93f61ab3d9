import type { ViewRow } from "../view";
import { needs } from "./needs";
import { RooflineView } from "./roofline";

export const ROOFLINE: ViewRow = {
  label: "Roofline",
  view: RooflineView,
  needs,
  keys: [
    ["← → ↑ ↓", "the next kernel in that direction"],
    ["J K", "the kernel with less and with more time"],
    ["Esc", "choose none"],
  ],
};
