import { expect, test } from "vitest";
import type { LaneBar, StepLanes } from "../../data/ranks";
import { barText, longestWait, place } from "./lanes";

const BAR: LaneBar = { operation: "all-reduce", times_ns: [1_000_000, 3_000_000, 3_200_000], last: 5 };
const LATE: LaneBar = { operation: "all-reduce", times_ns: [3_000_000, 3_000_000, 3_200_000], last: 5 };
const LANES: StepLanes = {
  step: 9,
  length_ns: 4_000_000,
  left_out: 0,
  rows: [
    { rank: 0, bars: [BAR] },
    { rank: 5, bars: [LATE] },
  ],
};

test("a bar says for whom its rank waits, or that it comes last", () => {
  expect(barText(0, BAR)).toBe("rank 0, all-reduce: waits 2.00 ms for rank 5, then 200 us");
  expect(barText(5, LATE)).toBe("rank 5 comes last to all-reduce: 200 us");
  expect(barText(0, { ...BAR, last: null })).toContain("for others");
});

test("bars are where their times are in the step", () => {
  expect(place(LANES, 1_000_000, 3_000_000)).toEqual([25, 50]);
});

test("the longest wait is that of another rank than the last", () => {
  expect(longestWait(LANES)).toBe("Rank 0 waits longest: 2.00 ms for rank 5, in all-reduce.");
  expect(longestWait({ ...LANES, rows: [{ rank: 5, bars: [LATE] }] })).toBe("");
});
