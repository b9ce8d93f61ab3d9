// How busy a profile was over its whole length, for the minimap.

import { type Busy, busyWithin } from "./idle";
import type { Group, Row } from "./lanes";
import { firstFrom } from "./order";
import type { Span } from "./span";

/** Share of the time of each of `columns` equal parts of a span in which something ran: GPUs and threads, 0 to 1. */
export function densityOf(
  groups: Group[],
  busy: Busy[],
  span: Span,
  columns: number,
): { gpu: number[]; host: number[] } {
  const step = (span.end - span.start) / columns;
  const parts = Array.from({ length: columns }, (_, index) => ({
    start: span.start + index * step,
    end: span.start + (index + 1) * step,
  }));
  const host = groups.flatMap((group) =>
    group.lanes.filter((lane) => !lane.isGpu && !lane.isSampled).map((lane) => lane.rows[0]),
  );
  return {
    gpu: parts.map((part) => mean(busy.map((one) => busyWithin(one, part) / step))),
    host: parts.map((part) =>
      Math.max(0, ...host.map((row) => (rowBefore(row, part.end) - rowBefore(row, part.start)) / step)),
    ),
  };
}

function mean(values: number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function rowBefore(row: Row, time_ns: number): number {
  const index = firstFrom(row.start, time_ns);
  return index === 0 ? 0 : row.busy[index] - Math.max(row.end[index - 1] - time_ns, 0);
}
