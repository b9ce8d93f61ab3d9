// Percentiles from histograms; the buckets are those of bragg/model/durations.py.

import type { Durations } from "../../data/profile";

const STEP_BITS = 4;
const STEPS = 2 ** STEP_BITS;

/** First duration of a bucket and of the one after it, ns: 16 steps an octave, and 1 ns each below 16 ns. */
export function bucketRange(bucket: number): [number, number] {
  const octave = Math.max(bucket >> STEP_BITS, 1);
  const width = 2 ** (octave - 1);
  const step = bucket - (octave - 1) * STEPS;
  return [step * width, (step + 1) * width];
}

/** Launches by frame and bucket. */
export type Histograms = Map<number, Map<number, number>>;

export function histograms(durations: Durations): Histograms {
  const found: Histograms = new Map();
  for (let row = 0; row < durations.frame.length; row++) {
    const ofFrame = found.get(durations.frame[row]) ?? new Map<number, number>();
    found.set(durations.frame[row], ofFrame);
    ofFrame.set(durations.bucket[row], (ofFrame.get(durations.bucket[row]) ?? 0) + durations.count[row]);
  }
  return found;
}

/** Quantiles of the launches of some frames together, ns, within 3.2 %; null: they are not known of all launches. */
export function quantiles(known: Histograms, frames: number[], launches: number, shares: number[]): (number | null)[] {
  const together = new Map<number, number>();
  let total = 0;
  for (const frame of frames) {
    for (const [bucket, count] of known.get(frame) ?? []) {
      together.set(bucket, (together.get(bucket) ?? 0) + count);
      total += count;
    }
  }
  if (!total || total !== launches) return shares.map(() => null);
  const ascending = [...together].sort((one, other) => one[0] - other[0]);
  return shares.map((share) => quantile(ascending, Math.max(share * total, 1)));
}

function quantile(ascending: [number, number][], wanted: number): number {
  let below = 0;
  for (const [bucket, count] of ascending) {
    below += count;
    if (below < wanted) continue;
    const [low, high] = bucketRange(bucket);
    return (low + high - 1) / 2;
  }
  throw new Error("a quantile is at most 1");
}
