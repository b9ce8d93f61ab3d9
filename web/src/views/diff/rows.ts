// The table of what changed, over all call paths.

import type { ChangedRow, DifferenceData } from "../../data/difference";
import { countText, valueText } from "../../ui/numbers";
import { fateOf } from "./sides";

export interface Column {
  name: string;
  label: string;
  value(row: ChangedRow): number | string;
  text(row: ChangedRow, unit: string): string;
}

const change = (row: ChangedRow) => row.after - row.before;

/** Each value of one launch; NaN: not counted. */
function mean(value: number, count: number | null): number {
  return count ? value / count : Number.NaN;
}

export function signed(value: number, unit: string): string {
  return value > 0 ? `+${valueText(value, unit)}` : valueText(value, unit);
}

/** `+16.7 %`, `new`, `gone`; a dash for no change. */
export function relativeText(before: number, after: number): string {
  const fate = fateOf(before, after);
  if (fate === "new" || fate === "gone") return fate;
  if (fate === "same") return "–";
  const percent = ((after - before) / before) * 100;
  return `${percent > 0 ? "+" : "-"}${Math.abs(percent) < 0.05 ? "<0.1" : Math.abs(percent).toFixed(1)} %`;
}

function relative(row: ChangedRow): number {
  if (row.before === row.after) return 0;
  return row.before === 0 ? Number.POSITIVE_INFINITY : change(row) / row.before;
}

function counts(row: ChangedRow): string {
  const texts = [row.count_before, row.count_after].map((count) =>
    count === null ? "" : countText(count, "", "").trim(),
  );
  return texts[0] === texts[1] ? texts[0] || "–" : `${texts[0] || 0} → ${texts[1] || 0}`;
}

export const COLUMNS: Column[] = [
  { name: "name", label: "name", value: (row) => row.label, text: (row) => row.label },
  { name: "change", label: "change", value: change, text: (row, unit) => signed(change(row), unit) },
  { name: "relative", label: "relative", value: relative, text: (row) => relativeText(row.before, row.after) },
  { name: "before", label: "before", value: (row) => row.before, text: (row, unit) => valueText(row.before, unit) },
  { name: "after", label: "after", value: (row) => row.after, text: (row, unit) => valueText(row.after, unit) },
  { name: "count", label: "count", value: (row) => row.count_after ?? 0, text: counts },
  {
    name: "mean_before",
    label: "mean before",
    value: (row) => mean(row.before, row.count_before),
    text: (row, unit) => valueText(mean(row.before, row.count_before), unit),
  },
  {
    name: "mean_after",
    label: "mean after",
    value: (row) => mean(row.after, row.count_after),
    text: (row, unit) => valueText(mean(row.after, row.count_after), unit),
  },
];

/** The rows in the order of a column; of changes the largest first, whichever way. */
export function sorted(data: DifferenceData, name: string, isDescending: boolean): ChangedRow[] {
  const column = COLUMNS.find((found) => found.name === name) ?? COLUMNS[1];
  const value = column.name === "change" ? (row: ChangedRow) => Math.abs(change(row)) : column.value;
  const sign = isDescending ? -1 : 1;
  return [...data.rows].sort((one, other) => sign * compare(value(one), value(other)));
}

function compare(one: number | string, other: number | string): number {
  if (typeof one === "string") return one < (other as string) ? -1 : one > (other as string) ? 1 : 0;
  const [first, second] = [one, other as number].map((value) =>
    Number.isNaN(value) ? Number.NEGATIVE_INFINITY : value,
  );
  return first === second ? 0 : first - second;
}
