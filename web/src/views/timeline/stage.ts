import type { ProfileData } from "../../data/profile";
import { element } from "../../ui/element";
import { cut, cutMiddle } from "../../ui/text";
import { Geometry, RULER_PX } from "./geometry";
import { type Caption, LanePixels } from "./lane_pixels";
import { type Band, GROUP_PX, ROW_PX } from "./layout";
import type { Model } from "./model";
import { Overlay } from "./overlay";
import type { Palette } from "./palette";
import type { Scene } from "./scene";
import { ticksOf } from "./ticks";

const FONT = "11px system-ui, sans-serif";
const LETTER_PX = 6.1;
const TICK_EVERY_PX = 90;
/** A frame has room for so many names before it is late. */
const MAX_CAPTIONS = 600;
/** More pixels are not told apart, and cost time. */
const MAX_RATIO = 2;

/** The lanes with their names and the ruler: a picture that is drawn anew in every frame in which it changes. */
export class Stage {
  readonly canvas = element("canvas", "timeline-lanes");
  readonly geometry: Geometry;
  private readonly overlayCanvas = element("canvas", "timeline-overlay");
  private readonly context = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true })!;
  private readonly overlay: Overlay;
  private readonly pixels: LanePixels;
  private ratio = 1;

  constructor(
    parent: HTMLElement,
    data: ProfileData,
    private readonly model: Model,
    private readonly palette: Palette,
  ) {
    this.geometry = new Geometry(data, model);
    this.pixels = new LanePixels(data, model, palette, this.geometry, (text) => this.widthOf(text));
    this.overlay = new Overlay(this.overlayCanvas.getContext("2d")!, data, model, palette, this.geometry);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", "Lanes of the timeline; keys are listed under the question mark");
    parent.append(this.canvas, this.overlayCanvas);
  }

  resize(width_px: number, height_px: number, closed: Set<number>): void {
    this.ratio = Math.min(devicePixelRatio || 1, MAX_RATIO);
    this.geometry.resize(width_px, height_px, closed);
    this.pixels.resize(this.ratio);
    for (const canvas of [this.canvas, this.overlayCanvas]) {
      canvas.width = Math.max(Math.round(width_px * this.ratio), 1);
      canvas.height = Math.max(Math.round(height_px * this.ratio), 1);
      canvas.style.width = `${width_px}px`;
      canvas.style.height = `${height_px}px`;
    }
  }

  draw(scene: Scene): void {
    const { context, geometry, ratio } = this;
    const ticks = ticksOf(scene.span, geometry.plot_px / TICK_EVERY_PX);
    const places = ticks.map((tick) => geometry.xOf(tick.at, scene.span));
    const captions = this.pixels.paint(scene, places);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(this.pixels.image, Math.round(geometry.labels_px * ratio), Math.round(RULER_PX * ratio));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
    for (const caption of captions.slice(0, MAX_CAPTIONS)) this.drawCaption(caption);
    this.drawLabels(scene);
    this.drawRuler(ticks.map((tick, index) => [places[index], tick.text]));
    this.drawOverlay(scene);
  }

  /** Alone, where nothing else changed. */
  drawOverlay(scene: Scene): void {
    this.overlay.draw(scene, this.ratio);
  }

  private widthOf(text: string): number {
    this.context.font = FONT;
    return this.context.measureText(text).width;
  }

  private drawCaption({ x, y, width, text, letter_px, ink }: Caption): void {
    const room = Math.floor((width - 6) / letter_px);
    if (room < 2) return;
    this.context.fillStyle = ink;
    // The sign of what was cut is about two letters wide.
    this.context.fillText(text.length <= room ? text : cutMiddle(text, room - 1), x + 4, y + ROW_PX / 2 - 1);
  }

  private drawLabels(scene: Scene): void {
    const { context, palette } = this;
    const { labels_px, width_px, height_px } = this.geometry;
    context.fillStyle = palette.backgroundCss;
    context.fillRect(0, 0, labels_px, height_px);
    for (const band of this.geometry.visible(scene.scroll_px)) {
      const y = RULER_PX + band.y - scene.scroll_px;
      if (band.lane === null) this.drawGroup(band, y, scene);
      else this.drawText(band.lane.label, 8, y + (labels_px ? ROW_PX / 2 : 7), labels_px || width_px, palette.faint);
    }
    context.fillStyle = palette.line;
    context.fillRect(labels_px - 1, RULER_PX, 1, height_px);
  }

  private drawGroup(band: Band, y: number, scene: Scene): void {
    const { width_px } = this.geometry;
    this.context.fillStyle = this.palette.group;
    this.context.fillRect(0, y, width_px, GROUP_PX - 3);
    const mark = scene.closed.has(band.group) ? "▸" : "▾";
    this.drawText(`${mark} ${this.model.groups[band.group].label}`, 6, y + 10, width_px, this.palette.ink);
  }

  private drawText(text: string, x: number, y: number, room_px: number, ink: string): void {
    this.context.fillStyle = ink;
    this.context.fillText(cut(text, Math.floor((room_px - x) / LETTER_PX)), x, y);
  }

  /** Last, over what is scrolled below it. */
  private drawRuler(ticks: [x: number, text: string][]): void {
    const { context, palette } = this;
    const { labels_px, width_px } = this.geometry;
    context.fillStyle = palette.backgroundCss;
    context.fillRect(0, 0, width_px, RULER_PX);
    context.fillStyle = palette.faint;
    for (const [x, text] of ticks) {
      const isWhole = x >= labels_px && x + 3 + context.measureText(text).width <= width_px;
      if (isWhole) context.fillText(text, x + 3, RULER_PX / 2);
    }
    context.fillStyle = palette.line;
    context.fillRect(0, RULER_PX - 1, width_px, 1);
    for (const [x] of ticks) if (x >= labels_px) context.fillRect(x, 4, 1, RULER_PX - 4);
  }
}
