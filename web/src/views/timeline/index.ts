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
  shows: "When everything ran: a lane for each stream and thread, pauses of GPUs, and arrows from launches to kernels.",
  command: "bragg run --data trace SCRIPT",
  sketch: [
    ["gpu", 30, 0, 34, 13],
    ["gpu", 80, 0, 20, 13],
    ["gpu", 108, 0, 46, 13],
    ["waits", 64, 0, 16, 13],
    ["host", 0, 22, 160, 13],
    ["host", 8, 38, 60, 13],
    ["host", 86, 38, 66, 13],
    ["host", 20, 54, 12, 13],
    ["host", 96, 54, 12, 13],
  ],
  keys: TIMELINE_KEYS,
};
