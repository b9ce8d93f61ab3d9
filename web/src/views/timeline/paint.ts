// Slices as pixels. The cost of a row depends on its pixels and not on its slices: what falls into one pixel is skipped
// by search, and its share of the pixel comes from sums that were made before.

import type { Row } from "./lanes";
import { firstFrom, firstNear } from "./order";

/** A colour as a pixel of a canvas has it: alpha, blue, green, red from the highest byte. */
export type Pixel = number;

/** A slice below this share of a pixel is still seen. */
const LEAST = 0.35;
/** Slices of at least so many pixels are parted from the next. */
const PARTED_PX = 4;

export interface Stretch {
  /** First and last instant, ns. */
  start: number;
  /** ns of a pixel. */
  scale: number;
}

/** How a row is painted. */
export interface Ink {
  /** Pixel of the n-th slice of the row. */
  colourOf(index: number): Pixel;
  /** Number of slices before each that were searched for; null: nothing is. */
  hits: Int32Array | null;
  hit: Pixel;
}

/** A slice that is wide enough for text. */
export interface Wide {
  index: number;
  x: number;
  width: number;
}

/** Paint a row into one line of pixels, which holds the background; slices that are wide enough for text are listed. */
export function paintRow(line: Uint32Array, row: Row, view: Stretch, ink: Ink, widest: number, wide: Wide[]): void {
  const width = line.length;
  const end = view.start + width * view.scale;
  const pen = new Pen(line);
  let index = firstFrom(row.end, view.start);
  while (index < row.start.length && row.start[index] < end) {
    const from = (row.start[index] - view.start) / view.scale;
    const to = (row.end[index] - view.start) / view.scale;
    const column = Math.max(Math.floor(from), 0);
    if (to >= column + 1) {
      pen.stroke(from, to, ink.hits !== null && isHit(ink.hits, index, index + 1) ? ink.hit : ink.colourOf(index));
      if (to - from >= widest) wide.push({ index, x: from, width: to - from });
      index += 1;
      continue;
    }
    const border = view.start + (column + 1) * view.scale;
    // At least one: rounding may put a slice that starts at the border into the pixel before it.
    let next = Math.max(firstNear(row.start, border, index), index + 1);
    // The last that starts in this pixel may reach into the next: it is a stroke of its own.
    if (next > index + 1 && row.end[next - 1] > border) next -= 1;
    const isFound = ink.hits !== null && isHit(ink.hits, index, next);
    const colour = isFound ? ink.hit : ink.colourOf((index + next) >> 1);
    pen.dot(column, isFound ? 1 : (row.busy[next] - row.busy[index]) / view.scale, colour);
    index = next;
  }
  pen.flush();
}

function isHit(hits: Int32Array, from: number, to: number): boolean {
  return hits[to] > hits[from];
}

/** Mixes what falls into one pixel: the largest part gives the colour, all parts together how strong it is. */
class Pen {
  private column = -1;
  private share = 0;
  private largest = 0;
  private colour: Pixel = 0;

  constructor(private readonly line: Uint32Array) {}

  dot(column: number, share: number, colour: Pixel): void {
    if (column !== this.column) {
      this.flush();
      this.column = column;
      this.share = 0;
      this.largest = 0;
    }
    this.share += share;
    if (share >= this.largest) {
      this.largest = share;
      this.colour = colour;
    }
  }

  stroke(from: number, to: number, colour: Pixel): void {
    const ends = to - from >= PARTED_PX ? to - 1 : to;
    const first = Math.floor(from);
    const last = Math.floor(ends);
    if (first >= 0) this.dot(first, Math.min(first + 1, ends) - from, colour);
    const whole = Math.max(first + 1, 0);
    if (whole < last) {
      this.flush();
      this.line.fill(colour, whole, Math.min(last, this.line.length));
    }
    if (last > first && ends > last) this.dot(last, ends - last, colour);
  }

  flush(): void {
    if (this.column >= 0 && this.column < this.line.length && this.share > 0) {
      const strength = Math.min(Math.max(this.share, LEAST), 1);
      this.line[this.column] = mixed(this.line[this.column], this.colour, strength);
    }
    this.column = -1;
  }
}

/** A pixel between two, 0: the first. */
export function mixed(one: Pixel, other: Pixel, share: number): Pixel {
  const part = Math.round(share * 256);
  const rest = 256 - part;
  const redBlue = (((one & 0xff00ff) * rest + (other & 0xff00ff) * part) >>> 8) & 0xff00ff;
  const green = (((one & 0x00ff00) * rest + (other & 0x00ff00) * part) >>> 8) & 0x00ff00;
  return (0xff000000 | redBlue | green) >>> 0;
}

/** The pixel of `#rrggbb`. */
export function pixelOf(colour: string): Pixel {
  const value = Number.parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
