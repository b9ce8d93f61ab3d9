import type { ViewRow } from "../view";
import { FindingsView } from "./view";

export const FINDINGS: ViewRow = {
  label: "Findings",
  view: FindingsView,
  needs: () => "",
  shows: "",
  command: "",
  sketch: [],
  keys: [],
};
