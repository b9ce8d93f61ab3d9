// The slices as a Chrome trace, which Perfetto opens. Process and thread ids start at 1: viewers give no lane to 0.

import type { ProfileData } from "../../data/profile";
import { TrackKind } from "../../data/profile";
import type { Group } from "./lanes";

// So that the text of a million slices is never one string.
const EVENTS_A_PART = 20_000;

/** The document in parts. */
export function chromeTrace(data: ProfileData, groups: Group[]): string[] {
  const parts = ['{"displayTimeUnit":"ns","traceEvents":[\n'];
  let events: string[] = [];
  let separator = "";
  for (const event of eventsOf(data, groups)) {
    events.push(JSON.stringify(event));
    if (events.length === EVENTS_A_PART) {
      parts.push(separator + events.join(",\n"));
      separator = ",\n";
      events = [];
    }
  }
  if (events.length > 0) parts.push(separator + events.join(",\n"));
  parts.push("\n]}\n");
  return parts;
}

function* eventsOf(data: ProfileData, groups: Group[]): Generator<Record<string, unknown>> {
  const { slices, tree, frames, flows } = data;
  const places = new Map<number, { pid: number; tid: number }>();
  let tid = 0;
  for (const [index, group] of groups.entries()) {
    const pid = index + 1;
    yield { ph: "M", name: "process_name", pid, args: { name: group.label } };
    for (const lane of group.lanes) {
      // Slices of different depths may overlap without containing each other, which a lane of the format must not.
      for (const [depth, row] of lane.rows.entries()) {
        if (depth === 0 || data.tracks.kind[lane.track] !== TrackKind.HostThread) {
          tid += 1;
          yield { ph: "M", name: "thread_name", pid, tid, args: { name: lane.label } };
          yield { ph: "M", name: "thread_sort_index", pid, tid, args: { sort_index: tid } };
        }
        for (const slice of row.slices) {
          const place = { pid, tid };
          places.set(slice, place);
          const ts = slices.start[slice] / 1e3;
          yield {
            ph: "X",
            name: frames.name[tree.frame[slices.node[slice]]],
            ts,
            dur: slices.duration[slice] / 1e3,
            ...place,
          };
        }
      }
    }
  }
  for (let flow = 0; flow < flows.source.length; flow += 1) {
    const from = places.get(flows.source[flow]);
    const to = places.get(flows.target[flow]);
    if (from === undefined || to === undefined) continue;
    const shared = { cat: "launch", name: "launch", id: flow + 1 };
    yield { ph: "s", ...shared, ts: slices.start[flows.source[flow]] / 1e3, ...from };
    yield { ph: "f", bp: "e", ...shared, ts: slices.start[flows.target[flow]] / 1e3, ...to };
  }
}
