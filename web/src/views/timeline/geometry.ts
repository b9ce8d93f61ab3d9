// Where things are on the stage, px from its corner: a ruler on top, names on the left, lanes below each other.

import type { ProfileData } from "../../data/profile";
import { sliceAt } from "./lanes";
import { type Band, bandAt, type Layout, layoutOf, ROW_PX } from "./layout";
import { gapsOfLane, type Model, placeOfSlice } from "./model";
import type { Scene } from "./scene";
import type { Span } from "./span";

export const RULER_PX = 24;
const LABELS_PX = 150;
/** Narrower stages have their labels above the lanes. */
const NARROW_PX = 640;
const NEAR_PX = 3;

/** What is at a point. */
export interface Hit {
  band: Band | null;
  /** Row of slices; -1: none. */
  slice: number;
  /** An idle time of the GPU; null: none. */
  gap: Span | null;
  inRuler: boolean;
  inLabels: boolean;
}

export class Geometry {
  width_px = 1;
  height_px = 1;
  private layout: Layout = { bands: [], height: 0 };

  constructor(
    private readonly data: ProfileData,
    private readonly model: Model,
  ) {}

  resize(width_px: number, height_px: number, closed: Set<number>): void {
    this.width_px = width_px;
    this.height_px = height_px;
    this.layout = layoutOf(this.model.groups, closed, this.labels_px === 0);
  }

  /** Width of the column of labels; 0 where they stand above lanes. */
  get labels_px(): number {
    return this.width_px < NARROW_PX ? 0 : LABELS_PX;
  }

  get plot_px(): number {
    return Math.max(this.width_px - this.labels_px, 1);
  }

  /** Of all lanes together. */
  get lanes_px(): number {
    return this.layout.height;
  }

  /** How far lanes can be scrolled. */
  get overflow_px(): number {
    return Math.max(this.lanes_px + RULER_PX - this.height_px, 0);
  }

  xOf(time_ns: number, span: Span): number {
    return this.labels_px + ((time_ns - span.start) / (span.end - span.start)) * this.plot_px;
  }

  timeAt(x_px: number, span: Span): number {
    return span.start + ((x_px - this.labels_px) / this.plot_px) * (span.end - span.start);
  }

  /** Top of a slice; NaN where its group is closed. */
  yOf(slice: number, scroll_px: number): number {
    const place = placeOfSlice(this.data, this.model, slice);
    const band = this.layout.bands.find((one) => one.lane !== null && one.lane === place?.lane);
    return band === undefined ? Number.NaN : this.rowTop(band, place?.depth ?? 0, scroll_px);
  }

  rowTop(band: Band, depth: number, scroll_px: number): number {
    return RULER_PX + band.rows_y + depth * ROW_PX - scroll_px;
  }

  /** The bands that are seen. */
  visible(scroll_px: number): Band[] {
    const bottom = scroll_px + this.height_px - RULER_PX;
    return this.layout.bands.filter((band) => band.y < bottom && band.y + band.height > scroll_px);
  }

  hit(x_px: number, y_px: number, scene: Scene): Hit {
    const inRuler = y_px < RULER_PX;
    const inLabels = x_px < this.labels_px;
    const found = inRuler ? null : bandAt(this.layout, y_px - RULER_PX + scene.scroll_px);
    const hit: Hit = { band: found?.band ?? null, slice: -1, gap: null, inRuler, inLabels };
    const lane = found?.band.lane;
    const row = lane?.rows[found?.depth ?? -1];
    if (!lane || !row || inLabels) return hit;
    const time_ns = this.timeAt(x_px, scene.span);
    const index = sliceAt(row, time_ns, (NEAR_PX / this.plot_px) * (scene.span.end - scene.span.start));
    if (index >= 0) hit.slice = row.slices[index];
    const gaps = gapsOfLane(this.data, this.model, lane);
    const gap = gaps === null ? -1 : sliceAt(gaps, time_ns, 0);
    if (gaps !== null && gap >= 0) hit.gap = { start: gaps.start[gap], end: gaps.end[gap] };
    return hit;
  }
}
