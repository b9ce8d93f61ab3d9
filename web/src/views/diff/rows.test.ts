import { expect, test } from "vitest";
import type { ChangedRow } from "../../data/difference";
import { COLUMNS, relativeText, signed, sorted } from "./rows";

const row = (label: string, before: number, after: number, counts: (number | null)[] = [2, 4]): ChangedRow => ({
  label,
  before,
  after,
  count_before: counts[0],
  count_after: counts[1],
});
const DATA = {
  metric: "gpu_time",
  unit: "ns",
  before: "a",
  after: "b",
  note: "",
  rows: [row("slow", 100, 150), row("gone", 80, 0, [3, null]), row("new", 0, 10), row("same", 5, 5, [null, null])],
};
const names = (column: string, isDescending = true) => sorted(DATA, column, isDescending).map((found) => found.label);

test("rows are ordered by the size of their change, whichever way it goes", () => {
  expect(names("change")).toEqual(["gone", "slow", "new", "same"]);
  expect(names("relative")).toEqual(["new", "slow", "same", "gone"]);
  expect(names("name", false)).toEqual(["gone", "new", "same", "slow"]);
  expect(names("mean_before").at(-1)).toBe("same");
});

test("cells tell changes with their sign, and what is new or gone", () => {
  const cells = (found: ChangedRow) => COLUMNS.slice(1).map((column) => column.text(found, "ns"));
  expect(cells(DATA.rows[0])).toEqual(["+50 ns", "+50.0 %", "100 ns", "150 ns", "2 → 4", "50 ns", "37.5 ns"]);
  expect(cells(DATA.rows[1]).slice(0, 5)).toEqual(["-80 ns", "gone", "80 ns", "0 ns", "3 → 0"]);
  expect(cells(DATA.rows[3]).slice(0, 5)).toEqual(["0 ns", "–", "5 ns", "5 ns", "–"]);
  expect([relativeText(0, 1), relativeText(1000, 1000.1)]).toEqual(["new", "+<0.1 %"]);
  expect(signed(-1500, "ns")).toBe("-1.50 us");
});
