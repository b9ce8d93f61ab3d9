import type { ProfileData } from "../../data/profile";
import { type Geometry, RULER_PX } from "./geometry";
import { ROW_PX } from "./layout";
import type { Model } from "./model";
import type { Palette } from "./palette";
import type { Scene } from "./scene";
import type { Span } from "./span";

const SLICE_PX = ROW_PX - 2;
const THUMB_PX = 4;
/** Outlines end so far outside of what is seen. */
const OUTSIDE_PX = 10;
/** Arrows of one slice; a launch of a graph has one to each stream. */
const MAX_ARROWS = 64;

/** What changes with the pointer: range, selection, arrows; over the lanes, so that these need not be drawn again. */
export class Overlay {
  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly data: ProfileData,
    private readonly model: Model,
    private readonly palette: Palette,
    private readonly geometry: Geometry,
  ) {}

  draw(scene: Scene, ratio: number): void {
    const { context } = this;
    const { width_px, height_px } = this.geometry;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width_px, height_px);
    context.save();
    this.clip(0);
    if (scene.range !== null) this.drawRange(scene.range, scene.span);
    this.drawThumb(scene.scroll_px);
    this.clip(RULER_PX);
    if (scene.hovered >= 0) this.drawOutline(scene.hovered, scene, 1);
    if (scene.selected >= 0) this.drawOutline(scene.selected, scene, 2.5);
    for (const slice of new Set([scene.selected, scene.hovered])) if (slice >= 0) this.drawArrows(slice, scene);
    context.restore();
  }

  private clip(top_px: number): void {
    const { labels_px, plot_px, height_px } = this.geometry;
    this.context.beginPath();
    this.context.rect(labels_px, top_px, plot_px, height_px);
    this.context.clip();
  }

  private drawRange(range: Span, span: Span): void {
    const { context, geometry } = this;
    const [from, to] = [geometry.xOf(range.start, span), geometry.xOf(range.end, span)];
    context.fillStyle = this.palette.veil;
    context.fillRect(geometry.labels_px, RULER_PX, from - geometry.labels_px, geometry.height_px);
    context.fillRect(to, RULER_PX, geometry.width_px - to, geometry.height_px);
    context.fillStyle = this.palette.accent;
    context.fillRect(from, RULER_PX - 4, Math.max(to - from, 1), 4);
    context.fillRect(from, 0, 1, geometry.height_px);
    context.fillRect(to, 0, 1, geometry.height_px);
  }

  /** How far the lanes are scrolled, where they can be. */
  private drawThumb(scroll_px: number): void {
    const { overflow_px, height_px, lanes_px, width_px } = this.geometry;
    if (overflow_px === 0) return;
    const room = height_px - RULER_PX;
    const scale = room / lanes_px;
    this.context.fillStyle = this.palette.faint;
    this.context.fillRect(width_px - THUMB_PX, RULER_PX + scroll_px * scale, THUMB_PX, room * scale);
  }

  private drawOutline(slice: number, scene: Scene, line_px: number): void {
    const { context, geometry } = this;
    const { start, duration } = this.data.slices;
    const from = Math.max(geometry.xOf(start[slice], scene.span), geometry.labels_px - OUTSIDE_PX);
    const to = Math.min(geometry.xOf(start[slice] + duration[slice], scene.span), geometry.width_px + OUTSIDE_PX);
    context.lineWidth = line_px;
    context.strokeStyle = this.palette.ink;
    context.strokeRect(from, geometry.yOf(slice, scene.scroll_px), Math.max(to - from, 2), SLICE_PX);
  }

  private drawArrows(slice: number, scene: Scene): void {
    const { context, geometry } = this;
    const { start, duration } = this.data.slices;
    context.strokeStyle = context.fillStyle = this.palette.accent;
    context.lineWidth = 1.5;
    for (const [source, target] of this.model.flows.of(slice).slice(0, MAX_ARROWS)) {
      const from_x = geometry.xOf(start[source] + duration[source] / 2, scene.span);
      const from_y = geometry.yOf(source, scene.scroll_px);
      const to_y = geometry.yOf(target, scene.scroll_px);
      if (Number.isNaN(from_y + to_y)) continue;
      const [below, above] = to_y > from_y ? [SLICE_PX, 0] : [0, SLICE_PX];
      this.drawArrow(from_x, from_y + below, geometry.xOf(start[target], scene.span), to_y + above);
    }
  }

  private drawArrow(from_x: number, from_y: number, to_x: number, to_y: number): void {
    const { context } = this;
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
