import { describe, expect, it } from "vitest";
import { busyOfDevices, busyWithin, longestGaps } from "./idle";
import { traceFromText } from "./trace_text";

const [busy] = busyOfDevices(
  traceFromText(`
stream 7
  0-10 a
  40-60 b
stream 8
  5-20 c
  90-100 d
`),
);

describe("a device", () => {
  it("works while any of its streams does", () => {
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
