import type { ViewRow } from "../view";
import { DifferenceView } from "./view";

export const DIFFERENCE: ViewRow = {
  label: "Difference",
  view: DifferenceView,
  needs: (data) => (data.difference ? "" : "This page shows one profile: bragg diff compares two."),
  shows: "Two profiles: what got slower, and what got faster.",
  command: "bragg diff before.bragg after.bragg --html diff.html",
  sketch: [],
  keys: [
    ["← ↑ → ↓", "a neighbour"],
    ["Enter", "zoom to the box that is chosen"],
    ["Esc", "zoom out a level"],
    ["0", "everything"],
    ["/", "search"],
  ],
};
