// Where the ruler has lines, and what it says at them.

import type { Span } from "./span";

export interface Tick {
  at: number;
  text: string;
}

const STEPS = [1, 2, 5, 10];
const UNITS: [string, number][] = [
  ["s", 1e9],
  ["ms", 1e6],
  ["us", 1e3],
  ["ns", 1],
];

/** Round instants of a span, at most `most` of them; all in one unit and with the digits that tell them apart. */
export function ticksOf(span: Span, most: number): Tick[] {
  const least = (span.end - span.start) / Math.max(most, 1);
  const decade = 10 ** Math.floor(Math.log10(least));
  const step = Math.max((STEPS.find((factor) => factor * decade >= least) ?? 10) * decade, 1);
  const largest = Math.max(Math.abs(span.start), Math.abs(span.end));
  const [unit, divisor] = UNITS.find(([, size]) => largest >= size) ?? UNITS[UNITS.length - 1];
  const decimals = Math.max(Math.ceil(Math.log10(divisor / step) - 1e-9), 0);
  const ticks: Tick[] = [];
  for (let index = Math.ceil(span.start / step); index * step <= span.end; index += 1) {
    ticks.push({ at: index * step, text: `${((index * step) / divisor).toFixed(decimals)} ${unit}` });
  }
  return ticks;
}

/** An instant to the nanosecond, in milliseconds. */
export function instantText(time_ns: number): string {
  return `${(time_ns / 1e6).toFixed(6)} ms`;
}
