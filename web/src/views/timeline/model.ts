// What the timeline makes of a profile once: lanes, idle times, arrows.

import type { ProfileData } from "../../data/profile";
import { FlowIndex } from "./flows";
import { type Busy, busyOfDevices } from "./idle";
import { type Group, groupsOf, type Lane, type Row } from "./lanes";
import { firstFrom } from "./order";

export interface Model {
  groups: Group[];
  busy: Busy[];
  /** Idle times of each device as a row of a lane. */
  gaps: Row[];
  flows: FlowIndex;
  /** From the start of the run to the end of the last slice. */
  length_ns: number;
}

/** Where a slice stands. */
export interface SlicePlace {
  lane: Lane;
  row: Row;
  depth: number;
  index: number;
}

// Views are made anew whenever they are shown.
const models = new WeakMap<ProfileData, Model>();

export function modelOf(data: ProfileData): Model {
  let model = models.get(data);
  if (model === undefined) {
    model = made(data);
    models.set(data, model);
  }
  return model;
}

function made(data: ProfileData): Model {
  const { start, duration } = data.slices;
  const busy = busyOfDevices(data);
  let length_ns = 0;
  for (let row = 0; row < start.length; row += 1) length_ns = Math.max(length_ns, start[row] + duration[row]);
  return {
    groups: groupsOf(data),
    busy,
    gaps: busy.map(gapRow),
    flows: new FlowIndex(data.flows),
    length_ns,
  };
}

function gapRow(busy: Busy): Row {
  const count = Math.max(busy.start.length - 1, 0);
  const row: Row = {
    slices: new Int32Array(count),
    start: busy.end.slice(0, count),
    end: busy.start.slice(1),
    busy: new Float64Array(count + 1),
  };
  for (let index = 0; index < count; index += 1) {
    row.busy[index + 1] = row.busy[index] + row.end[index] - row.start[index];
  }
  return row;
}

/** The idle times of the device that a lane is of; null: it is of none. */
export function gapsOfLane(data: ProfileData, model: Model, lane: Lane): Row | null {
  if (!lane.isGpu) return null;
  const { process, device } = data.tracks;
  const index = model.busy.findIndex((one) => one.process === process[lane.track] && one.device === device[lane.track]);
  return index < 0 ? null : model.gaps[index];
}

/** Where a slice stands; null: there is no such slice. */
export function placeOfSlice(data: ProfileData, model: Model, slice: number): SlicePlace | null {
  const track = data.slices.track[slice];
  for (const group of model.groups) {
    for (const lane of group.lanes) {
      if (lane.track !== track) continue;
      for (const [depth, row] of lane.rows.entries()) {
        const index = firstFrom(row.slices, slice);
        if (row.slices[index] === slice) return { lane, row, depth, index };
      }
    }
  }
  return null;
}

/** 1 for each node at or below one. */
export function belowNode(data: ProfileData, node: number): Uint8Array {
  const { parent } = data.tree;
  const below = new Uint8Array(parent.length);
  below[node] = 1;
  for (let at = node + 1; at < parent.length; at += 1) below[at] = below[parent[at]];
  return below;
}
