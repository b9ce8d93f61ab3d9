import { element } from "../../ui/element";
import { densityOf } from "./density";
import type { Model } from "./model";
import type { Palette } from "./palette";
import { type Span, whole } from "./span";

const HEIGHT_PX = 40;
const LEAST_PX = 3;

/** The whole run, and which part of it is shown; dragging moves that part. */
export class Minimap {
  private readonly canvas = element("canvas", "timeline-minimap");
  private readonly context = this.canvas.getContext("2d")!;
  private picture: HTMLCanvasElement | null = null;
  private width_px = 1;

  constructor(
    parent: HTMLElement,
    private readonly model: Model,
    private readonly palette: Palette,
    private readonly onMove: (around_ns: number) => void,
  ) {
    this.canvas.setAttribute("aria-hidden", "true");
    parent.append(this.canvas);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.move(event);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) this.move(event);
    });
  }

  resize(width_px: number): void {
    this.width_px = Math.max(Math.round(width_px), 1);
    this.canvas.width = this.width_px;
    this.canvas.height = HEIGHT_PX;
    this.picture = this.drawn();
  }

  draw(span: Span): void {
    const { context, palette } = this;
    const full = whole(this.model.length_ns);
    const scale = this.width_px / (full.end - full.start);
    const x = (span.start - full.start) * scale;
    const width = Math.max((span.end - span.start) * scale, LEAST_PX);
    context.fillStyle = palette.backgroundCss;
    context.fillRect(0, 0, this.width_px, HEIGHT_PX);
    if (this.picture) context.drawImage(this.picture, 0, 0);
    context.fillStyle = palette.veil;
    context.fillRect(0, 0, x, HEIGHT_PX);
    context.fillRect(x + width, 0, this.width_px, HEIGHT_PX);
    context.strokeStyle = palette.accent;
    context.lineWidth = 2;
    context.strokeRect(x + 1, 1, Math.max(width - 2, 1), HEIGHT_PX - 2);
  }

  /** Above the middle GPUs, below it threads; without GPUs threads alone. */
  private drawn(): HTMLCanvasElement {
    const picture = element("canvas");
    picture.width = this.width_px;
    picture.height = HEIGHT_PX;
    const context = picture.getContext("2d")!;
    const { gpu, host } = densityOf(this.model.groups, this.model.busy, whole(this.model.length_ns), this.width_px);
    const hasGpu = this.model.busy.length > 0;
    const middle = hasGpu ? Math.round(HEIGHT_PX * 0.65) : 0;
    for (let x = 0; x < this.width_px; x += 1) {
      context.fillStyle = this.palette.gpu;
      context.fillRect(x, middle, 1, -Math.round(gpu[x] * (middle - 2)));
      context.fillStyle = this.palette.host;
      const room = HEIGHT_PX - middle - 3;
      context.fillRect(
        x,
        hasGpu ? middle + 2 : HEIGHT_PX,
        1,
        Math.round(Math.min(host[x], 1) * room) * (hasGpu ? 1 : -1),
      );
    }
    return picture;
  }

  private move(event: PointerEvent): void {
    const full = whole(this.model.length_ns);
    const share = (event.clientX - this.canvas.getBoundingClientRect().left) / this.canvas.clientWidth;
    this.onMove(full.start + share * (full.end - full.start));
  }
}
