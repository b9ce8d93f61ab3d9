import { expect, test } from "vitest";
import type { RankRow, Ranks } from "../../data/ranks";
import { cellHeat, cellText, rowTexts, stepsText } from "./cells";

const ROW: RankRow = { rank: 5, host: "n0", cost_ns: [0, 2_500_000], share: 0.119, path: null, slack_ns: 5_000 };
const RANKS: Ranks = {
  sentence: "",
  shown: 5,
  unit: "step",
  findings: [],
  ideas: [],
  transfers: [],
  notes: [],
  edges: [1, 3, 4],
  most_ns: 5_000_000,
  rest: null,
  rows: [ROW],
  lanes: [],
};

test("a column names the steps that it stands for", () => {
  expect([0, 1].map((column) => stepsText(RANKS, column))).toEqual(["steps 1 to 2", "step 3"]);
  expect(cellText(RANKS, ROW, 1)).toBe("rank 5, step 3: costs the others 2.50 ms");
});

test("heat is a share of the most, and nothing where nothing is", () => {
  expect(cellHeat(RANKS, 2_500_000)).toBe(0.5);
  expect(cellHeat(RANKS, 9_000_000)).toBe(1);
  expect(cellHeat({ ...RANKS, most_ns: 0 }, 0)).toBe(0);
});

test("what is not known is empty", () => {
  expect(rowTexts(ROW)).toEqual(["11.9 %", "", "5.00 us"]);
});
