import type { ViewRow } from "../view";
import { needs } from "./needs";
import { RooflineView } from "./roofline";

export const ROOFLINE: ViewRow = {
  label: "Roofline",
  view: RooflineView,
  needs,
  shows: "Kernels below the roofs of their GPU: how far each is from the peak of arithmetic or of memory.",
  command: "bragg run --counters SCRIPT",
  sketch: [
    ["waits", 70, 8, 90, 2],
    ["waits", 46, 20, 24, 2],
    ["waits", 24, 34, 22, 2],
    ["waits", 4, 48, 20, 2],
    ["gpu", 40, 44, 9, 9],
    ["gpu", 84, 24, 14, 14],
    ["gpu", 120, 40, 7, 7],
  ],
  keys: [
    ["← → ↑ ↓", "the next kernel in that direction"],
    ["J K", "the kernel with less and with more time"],
    ["Esc", "choose none"],
  ],
};
