import { describe, expect, it } from "vitest";
import { busyOfDevices, busyWithin, gapCause, longestGaps } from "./idle";
import { traceFromText } from "./trace_text";

const STREAMS = "stream 7\n  0-10 a\n  40-60 b\nstream 8\n  5-20 c\n  90-100 d\n";
const [busy] = busyOfDevices(
  traceFromText(STREAMS, [
    [20, 40, "b"],
    [60, 90, "d"],
  ]),
);

describe("a device", () => {
  it("works between its pauses", () => {
    expect([[...busy.start], [...busy.end]]).toEqual([
      [0, 40, 90],
      [20, 60, 100],
    ]);
  });

  it("has the longest gaps first", () => {
    expect(longestGaps(busy, 5)).toEqual([
      { start: 60, end: 90 },
      { start: 20, end: 40 },
    ]);
  });

  it("counts the part of a time that is inside", () => {
    expect(busyWithin(busy, { start: 10, end: 50 })).toBe(20);
    expect(busyWithin(busy, { start: 0, end: 100 })).toBe(50);
    expect(busyWithin(busy, { start: 65, end: 85 })).toBe(0);
  });
});

it("threads are no devices", () => {
  expect(busyOfDevices(traceFromText("thread 1\n  0-9 a"))).toEqual([]);
});

function cause(launch: string, isKnown = true): [number | null, number | null] {
  const text = `thread 1\n${launch}\nstream 7\n  0-20 a\n  60-90 b <-5\n`;
  const data = traceFromText(text, [[20, 60, "b", isKnown ? "cuLaunchKernel" : undefined]]);
  const found = gapCause(data, busyOfDevices(data), { start: 20, end: 60 })!;
  return [found.waiting_ns, found.starting_ns];
}

describe("a gap", () => {
  it("waits for the host until the end of the launch, then for the start", () => {
    expect(cause("  40-50 cuLaunchKernel ->5")).toEqual([30, 10]);
  });

  it("of something that was launched before it waits for the start alone", () => {
    expect(cause("  5-10 cuLaunchKernel ->5")).toEqual([0, 40]);
  });

  it("has no cause where the launch is not known", () => {
    expect(cause("  5-10 cuLaunchKernel ->9", false)).toEqual([null, null]);
  });
});
