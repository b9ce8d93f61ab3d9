import type { ViewRow } from "../view";
import { RanksView } from "./view";

export const RANKS: ViewRow = {
  label: "Ranks",
  view: RanksView,
  needs: () => "",
  shows: "",
  command: "",
  sketch: [],
  keys: [],
};
