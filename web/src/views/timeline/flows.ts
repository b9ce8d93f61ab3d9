// Arrows from launches to what they caused.

import type { Flows } from "../../data/profile";
import { firstFrom } from "./order";

/** Finds the arrows of a slice without looking through all of them. */
export class FlowIndex {
  private readonly bySource: Int32Array;
  private readonly byTarget: Int32Array;
  private readonly sources: Int32Array;
  private readonly targets: Int32Array;

  constructor(private readonly flows: Flows) {
    this.bySource = orderOf(flows.source);
    this.byTarget = orderOf(flows.target);
    this.sources = this.bySource.map((flow) => flows.source[flow]);
    this.targets = this.byTarget.map((flow) => flows.target[flow]);
  }

  /** Source and target of each arrow that begins or ends at a slice. */
  of(slice: number): [source: number, target: number][] {
    const flows = [...found(this.sources, this.bySource, slice), ...found(this.targets, this.byTarget, slice)];
    return flows.map((flow) => [this.flows.source[flow], this.flows.target[flow]]);
  }
}

function found(keys: Int32Array, order: Int32Array, slice: number): Int32Array {
  const first = firstFrom(keys, slice);
  return order.subarray(first, firstFrom(keys, slice + 1, first));
}

function orderOf(keys: Int32Array): Int32Array {
  return Int32Array.from(keys, (_, index) => index).sort((a, b) => keys[a] - keys[b]);
}
