// Forward and backward pass, told by the names along a call path.

import type { ProfileData } from "../../data/profile";

export enum Phase {
  Neither = 0,
  Forward = 1,
  Backward = 2,
}

const FORWARD = /(^|[^a-z])forward([^a-z]|$)/i;
// Autograd's nodes are called `MmBackward0`.
const BACKWARD = /backward/i;

/** By node. What is computed again below the backward pass belongs to it. */
export function phases(data: ProfileData): Uint8Array {
  const ofFrame = Uint8Array.from(data.frames.name, phaseOfName);
  const found = new Uint8Array(data.tree.parent.length);
  for (let node = 0; node < found.length; node++) {
    const above = node ? found[data.tree.parent[node]] : Phase.Neither;
    found[node] = Math.max(above, ofFrame[data.tree.frame[node]]);
  }
  return found;
}

function phaseOfName(name: string): Phase {
  if (BACKWARD.test(name)) return Phase.Backward;
  return FORWARD.test(name) ? Phase.Forward : Phase.Neither;
}
