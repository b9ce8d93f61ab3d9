// The columns of the table: what they are called, how they are written and by what they are sorted.

import type { Configuration } from "../../data/profile";
import { bytesText, countText, rateText, shareText, timeText } from "../../ui/numbers";
import type { Row } from "./rows";

export interface Column {
  name: string;
  label: string;
  /** What it means, when the pointer rests on it. */
  meaning: string;
  text(row: Row): string;
  /** null stands behind everything else. */
  value(row: Row): number | string | null;
}

const main = (row: Row): Configuration | undefined => row.configurations[0];

function number(
  name: string,
  label: string,
  meaning: string,
  value: (row: Row) => number | null,
  write: (value: number | null) => string,
): Column {
  return { name, label, meaning, value, text: (row) => write(value(row)) };
}

/** A fact of the most frequent configuration; `*` where others differ. */
function ofConfiguration(
  name: string,
  label: string,
  meaning: string,
  value: (configuration: Configuration) => number | string | null,
  write: (value: number | string | null) => string = String,
): Column {
  return {
    name,
    label,
    meaning,
    value: (row) => (row.configurations.length ? value(row.configurations[0]) : null),
    text: (row) => {
      const first = main(row);
      if (first === undefined) return "–";
      const texts = new Set(row.configurations.map((configuration) => write(value(configuration))));
      return `${write(value(first))}${texts.size > 1 ? "*" : ""}`;
    },
  };
}

export const NAME: Column = {
  name: "name",
  label: "name",
  meaning: "Click a row for its configurations",
  value: (row) => row.label.toLowerCase(),
  text: (row) => row.label,
};

export const COLUMNS: Column[] = [
  number("time", "time", "GPU time over all call paths", (row) => row.time_ns, timeText),
  number("share", "share", "Of the GPU time of all kernels and copies", (row) => row.share, shareText),
  number(
    "calls",
    "calls",
    "Launches",
    (row) => row.count,
    (value) => countText(value ?? 0, "", "").trim(),
  ),
  number("mean", "mean", "Time of a launch", (row) => row.mean_ns, timeText),
  number("p50", "p50", "Half of the launches took at most this", (row) => row.p50_ns, timeText),
  number("p95", "p95", "95 of 100 launches took at most this", (row) => row.p95_ns, timeText),
  number("max", "max", "The longest launch", (row) => row.max_ns, timeText),
  ofConfiguration("grid", "grid", "Blocks; * where launches differ", (item) => sizeText(item.grid)),
  ofConfiguration("block", "block", "Threads of a block", (item) => sizeText(item.block)),
  ofConfiguration("registers", "regs", "Registers of a thread", (item) => item.registers),
  ofConfiguration("shared", "shared", "Shared memory of a block", (item) => item.shared_bytes, asBytes),
  ofConfiguration(
    "occupancy",
    "occupancy",
    "Share of a multiprocessor's warps that fit",
    (item) => item.occupancy,
    asShare,
  ),
  ofConfiguration(
    "limit",
    "limited by",
    "What keeps the occupancy from being more",
    (item) => item.occupancy_limit,
    asText,
  ),
  number(
    "flops",
    "flop/s",
    "What it reached",
    (row) => row.flops_per_s,
    (value) => rateText(value, "flop/s"),
  ),
  number(
    "bytes",
    "byte/s",
    "What it reached",
    (row) => row.bytes_per_s,
    (value) => rateText(value, "B/s"),
  ),
  number("util", "util", "Share of its roof that it reached", (row) => row.util, shareText),
];

/** `16 x 32`: without trailing ones. */
export function sizeText(size: [number, number, number]): string {
  const last = size[2] !== 1 ? 3 : size[1] !== 1 ? 2 : 1;
  return size.slice(0, last).join("×");
}

/** Columns that at least one row has a value of. */
export function usedColumns(rows: Row[]): Column[] {
  return COLUMNS.filter((column) => rows.some((row) => !["", "–"].includes(column.text(row))));
}

/** The rows in the order of a column; rows without a value last. */
export function sorted(rows: Row[], column: Column, isDescending: boolean): Row[] {
  const sign = isDescending ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [column.value(one), column.value(other)];
    if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
    return a < b ? -sign : a > b ? sign : other.time_ns - one.time_ns;
  });
}

function asBytes(value: number | string | null): string {
  return bytesText(value as number);
}

function asShare(value: number | string | null): string {
  return shareText(value as number | null);
}

function asText(value: number | string | null): string {
  return (value as string) || "–";
}
