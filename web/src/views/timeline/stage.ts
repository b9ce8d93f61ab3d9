import type { ProfileData } from "../../data/profile";
import { inkOn } from "../../ui/colours";
import { element } from "../../ui/element";
import { timeText } from "../../ui/numbers";
import { cut, printable } from "../../ui/text";
import type { Found } from "./find";
import type { Lane, Row } from "./lanes";
import { sliceAt } from "./lanes";
import { type Band, bandAt, GROUP_PX, type Layout, layoutOf, ROW_PX } from "./layout";
import { gapsOfLane, type Model, placeOfSlice } from "./model";
import { type Ink, paintRow, type Stretch, type Wide } from "./paint";
import type { Palette } from "./palette";
import type { Span } from "./span";
import { ticksOf } from "./ticks";

export const RULER_PX = 24;
const LABELS_PX = 150;
/** Narrower stages have their labels above the lanes. */
const NARROW_PX = 640;
const FONT = "11px system-ui, sans-serif";
const LETTER_PX = 6.1;
const TEXT_FROM_PX = 26;
const GAP_TEXT_FROM_PX = 52;
const TICK_EVERY_PX = 90;
/** A frame has room for so many names before it is late. */
const MAX_NAMES = 600;
const NEAR_PX = 3;
const THUMB_PX = 4;
/** More pixels are not told apart, and cost time. */
const MAX_RATIO = 2;
/** Arrows of one slice; a launch of a graph has one to each stream. */
const MAX_ARROWS = 64;

/** What is shown. */
export interface Scene {
  span: Span;
  scroll_px: number;
  closed: Set<number>;
  range: Span | null;
  /** Rows of slices; -1: none. */
  selected: number;
  hovered: number;
  found: Found | null;
}

/** What is at a point. */
export interface Hit {
  time_ns: number;
  band: Band | null;
  /** Row of slices; -1: none. */
  slice: number;
  /** An idle time of the GPU; null: none. */
  gap: Span | null;
  inRuler: boolean;
  inLabels: boolean;
}

/** Text of a frame, and the px of one letter of it. */
interface Name {
  text: string;
  letter_px: number;
}

/** Text to be drawn over the pixels. */
interface Caption extends Name {
  x: number;
  y: number;
  width: number;
  ink: string;
}

/** The lanes as pixels, and over them what changes with the pointer. */
export class Stage {
  readonly canvas = element("canvas", "timeline-lanes");
  private readonly overlay = element("canvas", "timeline-overlay");
  private readonly context = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true })!;
  private readonly overlayContext = this.overlay.getContext("2d")!;
  private readonly names = new Map<number, Name>();
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);
  private line = new Uint32Array(1);
  private blank = new Uint32Array(1);
  private width_px = 1;
  private height_px = 1;
  private ratio = 1;
  private layout: Layout = { bands: [], height: 0 };

  constructor(
    parent: HTMLElement,
    private readonly data: ProfileData,
    private readonly model: Model,
    private readonly palette: Palette,
  ) {
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", "Lanes of the timeline; keys are listed under the question mark");
    parent.append(this.canvas, this.overlay);
  }

  /** Width of the column of labels; 0 where they stand above lanes. */
  get labels_px(): number {
    return this.width_px < NARROW_PX ? 0 : LABELS_PX;
  }

  get plot_px(): number {
    return Math.max(this.width_px - this.labels_px, 1);
  }

  /** How far lanes can be scrolled. */
  get overflow_px(): number {
    return Math.max(this.layout.height + RULER_PX - this.height_px, 0);
  }

  resize(width_px: number, height_px: number): void {
    this.ratio = Math.min(devicePixelRatio || 1, MAX_RATIO);
    this.width_px = width_px;
    this.height_px = height_px;
    for (const canvas of [this.canvas, this.overlay]) {
      canvas.width = Math.max(Math.round(width_px * this.ratio), 1);
      canvas.height = Math.max(Math.round(height_px * this.ratio), 1);
      canvas.style.width = `${width_px}px`;
      canvas.style.height = `${height_px}px`;
    }
    const width = Math.max(Math.round(this.plot_px * this.ratio), 1);
    const height = Math.max(this.canvas.height - Math.round(RULER_PX * this.ratio), 1);
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.line = new Uint32Array(width);
    this.blank = new Uint32Array(width);
  }

  relayout(closed: Set<number>): void {
    this.layout = layoutOf(this.model.groups, closed, this.labels_px === 0);
  }

  xOf(time_ns: number, span: Span): number {
    return this.labels_px + ((time_ns - span.start) / (span.end - span.start)) * this.plot_px;
  }

  timeAt(x_px: number, span: Span): number {
    return span.start + ((x_px - this.labels_px) / this.plot_px) * (span.end - span.start);
  }

  hit(x_px: number, y_px: number, scene: Scene): Hit {
    const time_ns = this.timeAt(x_px, scene.span);
    const inRuler = y_px < RULER_PX;
    const inLabels = x_px < this.labels_px;
    const found = inRuler ? null : bandAt(this.layout, y_px - RULER_PX + scene.scroll_px);
    const hit: Hit = { time_ns, band: found?.band ?? null, slice: -1, gap: null, inRuler, inLabels };
    const lane = found?.band.lane;
    const row = lane?.rows[found?.depth ?? -1];
    if (!lane || !row || inLabels) return hit;
    const slack = (NEAR_PX / this.plot_px) * (scene.span.end - scene.span.start);
    const index = sliceAt(row, time_ns, slack);
    if (index >= 0) hit.slice = row.slices[index];
    const gaps = gapsOfLane(this.data, this.model, lane);
    const gap = gaps === null ? -1 : sliceAt(gaps, time_ns, 0);
    if (gaps !== null && gap >= 0) hit.gap = { start: gaps.start[gap], end: gaps.end[gap] };
    return hit;
  }

  /** Top of a slice's rectangle on the stage; NaN where its group is closed. */
  yOf(slice: number, scroll_px: number): number {
    const place = placeOfSlice(this.data, this.model, slice);
    const band = this.layout.bands.find((one) => one.lane === place?.lane && one.lane !== null);
    return place === null || band === undefined
      ? Number.NaN
      : RULER_PX + band.rows_y + place.depth * ROW_PX - scroll_px;
  }

  draw(scene: Scene): void {
    const names: Caption[] = [];
    const { context, palette, ratio } = this;
    const ticks = ticksOf(scene.span, this.plot_px / TICK_EVERY_PX);
    this.fillBlank(ticks.map((tick) => this.xOf(tick.at, scene.span) - this.labels_px));
    for (let y = 0; y < this.image.height; y += 1) this.pixels.set(this.blank, y * this.image.width);
    for (const band of this.visible(scene)) if (band.lane) this.paintLane(band, band.lane, scene, names);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(this.image, Math.round(this.labels_px * ratio), Math.round(RULER_PX * ratio));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
    for (const { x, y, width, text, letter_px, ink } of names.slice(0, MAX_NAMES)) {
      const room = Math.floor((width - 6) / letter_px);
      if (room < 2) continue;
      context.fillStyle = ink;
      // The sign of what was cut is about two letters wide.
      context.fillText(text.length <= room ? text : cut(text, room - 1), x + 4, y + ROW_PX / 2 - 1);
    }
    this.drawLabels(scene);
    this.drawRuler(ticks.map((tick) => [this.xOf(tick.at, scene.span), tick.text]));
    context.strokeStyle = palette.line;
    context.strokeRect(this.labels_px - 0.5, -0.5, this.plot_px, this.height_px);
    this.drawOverlay(scene);
  }

  private fillBlank(grid: number[]): void {
    this.blank.fill(this.palette.background);
    const faint = this.palette.grid;
    for (const x of grid) {
      const column = Math.round(x * this.ratio);
      if (column >= 0 && column < this.blank.length) this.blank[column] = faint;
    }
  }

  private visible(scene: Scene): Band[] {
    const bottom = scene.scroll_px + this.height_px - RULER_PX;
    return this.layout.bands.filter((band) => band.y < bottom && band.y + band.height > scene.scroll_px);
  }

  private paintLane(band: Band, lane: Lane, scene: Scene, names: Caption[]): void {
    const gaps = gapsOfLane(this.data, this.model, lane);
    // Its streams have the gaps of the device in common: one of them says how long they are.
    const lanes = this.model.groups[band.group].lanes;
    const isFirst = lanes.find((one) => gapsOfLane(this.data, this.model, one) === gaps) === lane;
    for (const [depth, row] of lane.rows.entries()) {
      const y = RULER_PX + band.rows_y + depth * ROW_PX - scene.scroll_px;
      if (y + ROW_PX < RULER_PX || y > this.height_px) continue;
      this.line.set(this.blank);
      if (depth === 0 && gaps !== null) this.paintGaps(gaps, y, scene, isFirst ? names : []);
      const wide: Wide[] = [];
      paintRow(this.line, row, this.stretch(scene.span), this.inkOf(row, scene), TEXT_FROM_PX * this.ratio, wide);
      for (const one of wide) names.push(this.nameOf(row, one, y, scene));
      this.copyLine(y);
    }
  }

  private paintGaps(gaps: Row, y: number, scene: Scene, names: Caption[]): void {
    const wide: Wide[] = [];
    const ink: Ink = { colourOf: () => this.palette.gap, hits: null, hit: 0 };
    paintRow(this.line, gaps, this.stretch(scene.span), ink, GAP_TEXT_FROM_PX * this.ratio, wide);
    for (const { index, x: begin, width } of wide) {
      const [from, room] = this.inside(begin, width);
      const text = timeText(gaps.end[index] - gaps.start[index]);
      const x = from + Math.max((room - text.length * LETTER_PX) / 2 - 4, 0);
      names.push({ x, y, width: room, text, letter_px: LETTER_PX, ink: this.palette.faint });
    }
  }

  private inkOf(row: Row, scene: Scene): Ink {
    const { slices, tree } = this.data;
    const pixels = scene.found === null ? this.palette.pixels : this.palette.dimmed;
    return {
      colourOf: (index) => pixels[tree.frame[slices.node[row.slices[index]]]],
      hits: scene.found?.hits.get(row) ?? null,
      hit: this.palette.hit,
    };
  }

  private nameOf(row: Row, wide: Wide, y: number, scene: Scene): Caption {
    const frame = this.data.tree.frame[this.data.slices.node[row.slices[wide.index]]];
    const [x, width] = this.inside(wide.x, wide.width);
    const isDimmed = scene.found !== null && !scene.found.frames[frame];
    const isHit = scene.found !== null && !isDimmed;
    const ink = isDimmed ? this.palette.faint : isHit ? this.palette.hitInk : inkOn(this.palette.css[frame]);
    return { x, y, width, ink, ...this.nameOfFrame(frame) };
  }

  /** The part of a device pixel stretch that is seen, px. */
  private inside(x: number, width: number): [x: number, width: number] {
    const from = Math.max(x, 0) / this.ratio;
    const to = Math.min((x + width) / this.ratio, this.plot_px);
    return [this.labels_px + from, to - from];
  }

  private nameOfFrame(frame: number): Name {
    let name = this.names.get(frame);
    if (name === undefined) {
      const text = printable(this.data.frames.label[frame].slice(0, 200));
      this.context.font = FONT;
      name = { text, letter_px: Math.max(this.context.measureText(text).width / Math.max(text.length, 1), 3) };
      this.names.set(frame, name);
    }
    return name;
  }

  private stretch(span: Span): Stretch {
    return { start: span.start, scale: (span.end - span.start) / this.line.length };
  }

  private copyLine(y_px: number): void {
    const first = Math.round((y_px - RULER_PX) * this.ratio);
    const last = Math.min(first + Math.round((ROW_PX - 2) * this.ratio), this.image.height);
    for (let y = Math.max(first, 0); y < last; y += 1) this.pixels.set(this.line, y * this.image.width);
  }

  private drawLabels(scene: Scene): void {
    const { context, palette } = this;
    const width = this.labels_px;
    context.fillStyle = palette.backgroundCss;
    context.fillRect(0, 0, width, this.height_px);
    context.save();
    context.beginPath();
    context.rect(0, RULER_PX, this.width_px, this.height_px);
    context.clip();
    for (const band of this.visible(scene)) {
      const y = RULER_PX + band.y - scene.scroll_px;
      if (band.lane === null) this.drawGroup(band, y, scene);
      else this.drawText(band.lane.label, 8, y + (width ? ROW_PX / 2 : 7), width || this.width_px, palette.faint);
    }
    context.restore();
  }

  private drawGroup(band: Band, y: number, scene: Scene): void {
    const { context, palette } = this;
    context.fillStyle = palette.group;
    context.fillRect(0, y, this.width_px, GROUP_PX - 3);
    const mark = scene.closed.has(band.group) ? "▸" : "▾";
    this.drawText(`${mark} ${this.model.groups[band.group].label}`, 6, y + 10, this.width_px, palette.ink);
  }

  private drawText(text: string, x: number, y: number, room: number, ink: string): void {
    this.context.fillStyle = ink;
    this.context.fillText(cut(text, Math.floor((room - x) / LETTER_PX)), x, y);
  }

  private drawRuler(ticks: [x: number, text: string][]): void {
    const { context, palette } = this;
    context.fillStyle = palette.backgroundCss;
    context.fillRect(0, 0, this.width_px, RULER_PX);
    context.fillStyle = palette.faint;
    for (const [x, text] of ticks) if (x >= this.labels_px) context.fillText(text, x + 3, RULER_PX / 2);
    context.fillStyle = palette.line;
    context.fillRect(0, RULER_PX - 1, this.width_px, 1);
    for (const [x] of ticks) if (x >= this.labels_px) context.fillRect(x, 4, 1, RULER_PX - 4);
  }

  /** Selection, pointer, range and arrows. */
  drawOverlay(scene: Scene): void {
    const context = this.overlayContext;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width_px, this.height_px);
    context.save();
    context.beginPath();
    context.rect(this.labels_px, 0, this.plot_px, this.height_px);
    context.clip();
    if (scene.range !== null) this.drawRange(scene.range, scene.span);
    this.drawThumb(scene.scroll_px);
    context.beginPath();
    context.rect(this.labels_px, RULER_PX, this.plot_px, this.height_px);
    context.clip();
    if (scene.hovered >= 0) this.drawOutline(scene.hovered, scene, 1);
    if (scene.selected >= 0) this.drawOutline(scene.selected, scene, 2.5);
    for (const slice of new Set([scene.selected, scene.hovered])) if (slice >= 0) this.drawArrows(slice, scene);
    context.restore();
  }

  private drawRange(range: Span, span: Span): void {
    const context = this.overlayContext;
    const [from, to] = [this.xOf(range.start, span), this.xOf(range.end, span)];
    context.fillStyle = this.palette.veil;
    context.fillRect(this.labels_px, RULER_PX, from - this.labels_px, this.height_px);
    context.fillRect(to, RULER_PX, this.width_px - to, this.height_px);
    context.fillStyle = this.palette.accent;
    context.fillRect(from, RULER_PX - 4, Math.max(to - from, 1), 4);
    context.fillRect(from, 0, 1, this.height_px);
    context.fillRect(to, 0, 1, this.height_px);
  }

  /** How far the lanes are scrolled, where they can be. */
  private drawThumb(scroll_px: number): void {
    if (this.overflow_px === 0) return;
    const room = this.height_px - RULER_PX;
    const scale = room / this.layout.height;
    this.overlayContext.fillStyle = this.palette.faint;
    this.overlayContext.fillRect(this.width_px - THUMB_PX, RULER_PX + scroll_px * scale, THUMB_PX, room * scale);
  }

  private drawOutline(slice: number, scene: Scene, line_px: number): void {
    const context = this.overlayContext;
    const { start, duration } = this.data.slices;
    const from = Math.max(this.xOf(start[slice], scene.span), this.labels_px - 10);
    const to = Math.min(this.xOf(start[slice] + duration[slice], scene.span), this.width_px + 10);
    context.lineWidth = line_px;
    context.strokeStyle = this.palette.ink;
    context.strokeRect(from, this.yOf(slice, scene.scroll_px), Math.max(to - from, 2), ROW_PX - 2);
  }

  private drawArrows(slice: number, scene: Scene): void {
    const { start, duration } = this.data.slices;
    const context = this.overlayContext;
    context.strokeStyle = context.fillStyle = this.palette.accent;
    context.lineWidth = 1.5;
    for (const [source, target] of this.model.flows.of(slice).slice(0, MAX_ARROWS)) {
      const from = [this.xOf(start[source] + duration[source] / 2, scene.span), this.yOf(source, scene.scroll_px)];
      const to = [this.xOf(start[target], scene.span), this.yOf(target, scene.scroll_px)];
      if (Number.isNaN(from[1] + to[1])) continue;
      const isDown = to[1] > from[1];
      this.drawArrow(from[0], from[1] + (isDown ? ROW_PX - 2 : 0), to[0], to[1] + (isDown ? 0 : ROW_PX - 2));
    }
  }

  private drawArrow(from_x: number, from_y: number, to_x: number, to_y: number): void {
    const context = this.overlayContext;
    const bend = (to_y - from_y) / 2;
    context.beginPath();
    context.moveTo(from_x, from_y);
    context.bezierCurveTo(from_x, from_y + bend, to_x, to_y - bend, to_x, to_y);
    context.stroke();
    const wing = Math.sign(bend) * 7;
    context.beginPath();
    context.moveTo(to_x, to_y);
    context.lineTo(to_x - 4, to_y - wing);
    context.lineTo(to_x + 4, to_y - wing);
    context.fill();
  }
}
