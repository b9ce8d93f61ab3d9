import type { ViewRow } from "../view";
import { TIMELINE_KEYS } from "./keys";
import { TimelineView } from "./timeline";

export const TIMELINE: ViewRow = {
  label: "Timeline",
  view: TimelineView,
  needs: (data) =>
    data.slices.start.length > 0
      ? ""
      : data.meta.data === "trace"
        ? "No scope, operator or GPU work ran while this profile was recorded."
        : "This profile holds sums and not when things happened. Record it again with: bragg run --data trace",
  keys: TIMELINE_KEYS,
};
