import type { ProfileData } from "../../data/profile";
import { inkOn } from "../../ui/colours";
import { timeText } from "../../ui/numbers";
import { printable } from "../../ui/text";
import { type Geometry, RULER_PX } from "./geometry";
import type { Lane, Row } from "./lanes";
import { type Band, ROW_PX } from "./layout";
import { gapsOfLane, type Model } from "./model";
import { type Ink, paintRow, type Stretch, type Wide } from "./paint";
import type { Palette } from "./palette";
import type { Scene } from "./scene";

/** Slices and gaps of this width have text. */
const TEXT_FROM_PX = 26;
const GAP_TEXT_FROM_PX = 52;
const MAX_NAME = 200;
/** Between rows. */
const ROW_GAP_PX = 2;

/** Text, and the px of one letter of it. */
interface Name {
  text: string;
  letter_px: number;
}

/** Text to be drawn over the pixels. */
export interface Caption extends Name {
  x: number;
  y: number;
  width: number;
  ink: string;
}

/** The lanes of the stage, pixel by pixel: a row is painted once, as a line, and copied to its height. */
export class LanePixels {
  image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);
  private line = new Uint32Array(1);
  private blank = new Uint32Array(1);
  private ratio = 1;
  private readonly names = new Map<number, Name>();

  constructor(
    private readonly data: ProfileData,
    private readonly model: Model,
    private readonly palette: Palette,
    private readonly geometry: Geometry,
    private readonly widthOf: (text: string) => number,
  ) {}

  resize(ratio: number): void {
    const { plot_px, height_px } = this.geometry;
    const width = Math.max(Math.round(plot_px * ratio), 1);
    const height = Math.max(Math.round((height_px - RULER_PX) * ratio), 1);
    this.ratio = ratio;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.line = new Uint32Array(width);
    this.blank = new Uint32Array(width);
  }

  /** Paint all lanes that are seen, with lines of the ruler at some places; returns what is to be written on them. */
  paint(scene: Scene, grid: number[]): Caption[] {
    const captions: Caption[] = [];
    this.blank.fill(this.palette.background);
    for (const x of grid) {
      const column = Math.round((x - this.geometry.labels_px) * this.ratio);
      if (column >= 0 && column < this.blank.length) this.blank[column] = this.palette.grid;
    }
    for (let y = 0; y < this.image.height; y += 1) this.pixels.set(this.blank, y * this.image.width);
    for (const band of this.geometry.visible(scene.scroll_px)) {
      if (band.lane) this.paintLane(band, band.lane, scene, captions);
    }
    return captions;
  }

  private paintLane(band: Band, lane: Lane, scene: Scene, captions: Caption[]): void {
    const gaps = gapsOfLane(this.data, this.model, lane);
    // Its streams have the gaps of the device in common: one of them says how long they are.
    const lanes = this.model.groups[band.group].lanes;
    const isFirst = lanes.find((one) => gapsOfLane(this.data, this.model, one) === gaps) === lane;
    for (const [depth, row] of lane.rows.entries()) {
      const y = this.geometry.rowTop(band, depth, scene.scroll_px);
      if (y + ROW_PX < RULER_PX || y > this.geometry.height_px) continue;
      this.line.set(this.blank);
      if (depth === 0 && gaps !== null) this.paintGaps(gaps, y, scene, isFirst ? captions : []);
      const wide: Wide[] = [];
      paintRow(this.line, row, this.stretch(scene), this.inkOf(row, scene), TEXT_FROM_PX * this.ratio, wide);
      for (const one of wide) captions.push(this.captionOf(row, one, y, scene));
      this.copyLine(y);
    }
  }

  private paintGaps(gaps: Row, y: number, scene: Scene, captions: Caption[]): void {
    const wide: Wide[] = [];
    const ink: Ink = { colourOf: () => this.palette.gap, hits: null, hit: 0 };
    paintRow(this.line, gaps, this.stretch(scene), ink, GAP_TEXT_FROM_PX * this.ratio, wide);
    for (const one of wide) {
      const [x, width] = this.inside(one);
      const text = timeText(gaps.end[one.index] - gaps.start[one.index]);
      const text_px = this.widthOf(text);
      const middle = x + Math.max((width - text_px) / 2 - 4, 0);
      captions.push({ x: middle, y, width, text, letter_px: text_px / text.length, ink: this.palette.faint });
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

  private captionOf(row: Row, wide: Wide, y: number, scene: Scene): Caption {
    const frame = this.data.tree.frame[this.data.slices.node[row.slices[wide.index]]];
    const [x, width] = this.inside(wide);
    return { x, y, width, ink: this.textInk(frame, scene), ...this.nameOf(frame) };
  }

  private textInk(frame: number, scene: Scene): string {
    if (scene.found === null) return inkOn(this.palette.css[frame]);
    return scene.found.frames[frame] ? this.palette.hitInk : this.palette.faint;
  }

  /** The part of a stretch of device pixels that is seen, px of the stage. */
  private inside({ x, width }: Wide): [x: number, width: number] {
    const from = Math.max(x, 0) / this.ratio;
    const to = Math.min((x + width) / this.ratio, this.geometry.plot_px);
    return [this.geometry.labels_px + from, to - from];
  }

  private nameOf(frame: number): Name {
    let name = this.names.get(frame);
    if (name === undefined) {
      const text = printable(this.data.frames.label[frame].slice(0, MAX_NAME));
      name = { text, letter_px: Math.max(this.widthOf(text) / Math.max(text.length, 1), 3) };
      this.names.set(frame, name);
    }
    return name;
  }

  private stretch({ span }: Scene): Stretch {
    return { start: span.start, scale: (span.end - span.start) / this.line.length };
  }

  private copyLine(y_px: number): void {
    const first = Math.round((y_px - RULER_PX) * this.ratio);
    const last = Math.min(first + Math.round((ROW_PX - ROW_GAP_PX) * this.ratio), this.image.height);
    for (let y = Math.max(first, 0); y < last; y += 1) this.pixels.set(this.line, y * this.image.width);
  }
}
