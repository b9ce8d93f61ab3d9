// Logarithmic axes that hold all points and roofs; the same rules as bragg/views/roofline_svg.py.

import type { RooflineData, RooflinePoint } from "../../data/roofline";

/** Values between two powers of ten, on a line of pixels. */
export class Axis {
  constructor(
    readonly low: number,
    readonly high: number,
    readonly start: number,
    readonly end: number,
  ) {}

  pixel(value: number): number {
    const share = Math.log10(value / this.low) / Math.log10(this.high / this.low);
    return this.start + share * (this.end - this.start);
  }

  /** The powers of ten, both ends included. */
  get decades(): number[] {
    const first = Math.round(Math.log10(this.low));
    const last = Math.round(Math.log10(this.high));
    return Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
  }
}

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** A roof as lines of the chart: intensity and flop/s of their ends. */
export interface RoofLine {
  roof: number;
  from: [intensity: number, flops_per_s: number];
  to: [intensity: number, flops_per_s: number];
  /** Widths in bits that share this level; empty: the slope of the memory. */
  widths: number[];
  /** Whether flops of these widths were counted, so that points stand below it. */
  isCounted: boolean;
}

/** Points that have a place in the chart. */
export function drawn(chart: RooflineData): RooflinePoint[] {
  return chart.points.filter((point) => point.absent === "" && point.intensity && point.flops_per_s);
}

/** Axes with room for slopes and levels beside all points. */
export function axesOf(chart: RooflineData, box: Box): { x: Axis; y: Axis } {
  const peaks = chart.roofs.flatMap((roof) => roof.flops_per_s.map(([, peak]) => peak));
  const ridges = chart.roofs.flatMap((roof) =>
    roof.flops_per_s.flatMap(([, peak]) => (roof.bytes_per_s ? [peak / roof.bytes_per_s] : [])),
  );
  const points = drawn(chart);
  const rates = points.map((point) => point.flops_per_s as number);
  const xs = [...points.map((point) => point.intensity as number), ...ridges.flatMap((one) => [one / 6, one * 4])];
  const ys = [...rates, ...peaks, ...(rates.length > 0 ? [] : peaks.map((peak) => peak / 1e4))];
  return {
    x: axis(xs.length > 0 ? xs : [1], box.left, box.right),
    y: axis(ys.length > 0 ? ys : [1e9], box.bottom, box.top),
  };
}

function axis(values: number[], start: number, end: number): Axis {
  // A third of a decade of room for the marks themselves.
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)) - 0.3);
  const high = 10 ** Math.ceil(Math.log10(Math.max(...values)) + 0.3);
  return new Axis(low, high, start, end);
}

/** The slope of the memory and the levels of each roof, within the axes. */
export function roofLines(chart: RooflineData, x: Axis, y: Axis): RoofLine[] {
  const counted = new Set(chart.widths.length > 0 ? chart.widths : [16]);
  return chart.roofs.flatMap((roof, index) => {
    const byRate = new Map<number, number[]>();
    for (const [width, peak] of roof.flops_per_s) byRate.set(peak, [...(byRate.get(peak) ?? []), width]);
    const lines: RoofLine[] = [...byRate].map(([peak, widths]) => {
      const from = roof.bytes_per_s ? Math.max(peak / roof.bytes_per_s, x.low) : x.low;
      const isCounted = widths.some((width) => counted.has(width));
      return { roof: index, from: [from, peak], to: [x.high, peak], widths, isCounted };
    });
    const highest = byRate.size > 0 ? Math.max(...byRate.keys()) : y.high;
    const slope = roof.bytes_per_s ? slopeOf(index, roof.bytes_per_s, highest, x, y) : null;
    return slope === null ? lines : [...lines, slope];
  });
}

function slopeOf(roof: number, bytes_per_s: number, highest: number, x: Axis, y: Axis): RoofLine | null {
  const from = Math.max(x.low, y.low / bytes_per_s);
  const to = Math.min(x.high, highest / bytes_per_s);
  if (to <= from) return null;
  return { roof, from: [from, from * bytes_per_s], to: [to, to * bytes_per_s], widths: [], isCounted: true };
}

const LARGEST_PX = 32;
const SMALLEST_PX = 4;

/** Of a circle whose area is the share of GPU time. */
export function radius(point: RooflinePoint, chart: RooflineData): number {
  const share = chart.time_ns > 0 ? point.time_ns / chart.time_ns : 0;
  return Math.max(SMALLEST_PX, LARGEST_PX * Math.sqrt(share));
}

/** The nearest point in a direction, for keys; -1: there is none. */
export function neighbour(places: [x: number, y: number][], from: number, dx: number, dy: number): number {
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, [x, y]] of places.entries()) {
    const along = (x - places[from][0]) * dx + (y - places[from][1]) * dy;
    const across = Math.abs((x - places[from][0]) * dy) + Math.abs((y - places[from][1]) * dx);
    if (index === from || along <= 0 || across > 2 * along) continue;
    const distance = along + 2 * across;
    if (distance < least) {
      least = distance;
      best = index;
    }
  }
  return best;
}

const PREFIXES: [string, number][] = [
  ["P", 1e15],
  ["T", 1e12],
  ["G", 1e9],
  ["M", 1e6],
  ["k", 1e3],
];

/** A power of ten as short as can be: `10 T`, `0.01`, `1e-5`. */
export function decadeText(value: number): string {
  const [prefix, size] = PREFIXES.find(([, one]) => value >= one * 0.99) ?? ["", 1];
  const scaled = value / size;
  if (scaled >= 1) return `${Math.round(scaled)}${prefix && ` ${prefix}`}`;
  return scaled >= 1e-3 ? String(Number(scaled.toPrecision(1))) : scaled.toExponential(0);
}
