/** What pointers, wheels and fingers mean. Places are px from the corner of the element. */
export interface Gesture {
  /** A factor above 1 shows more. */
  zoom(factor: number, x: number): void;
  move(x_px: number, y_px: number): void;
  hover(x: number, y: number, event: PointerEvent): void;
  leave(): void;
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
  startsRange(x: number, y: number, shift: boolean): boolean;
  range(from_x: number, to_x: number): void;
  isOverLabels(x: number, y: number): boolean;
}

/** A hand is never quite still. */
const CLICK_PX = 4;
/** e to this for each px of the wheel: 100 px, a notch, is 1.22. */
const ZOOM_A_PX = 0.002;
/** Pinches on a trackpad come as a wheel in small steps. */
const PINCH_A_PX = 0.01;
const LINE_PX = 32;

interface Point {
  x: number;
  y: number;
}

/** Listens to one element. */
export class Gestures {
  private readonly down = new Map<number, Point>();
  private first: Point = { x: 0, y: 0 };
  private kind: "none" | "press" | "pan" | "range" = "none";

  constructor(
    private readonly target: HTMLElement,
    private readonly on: Gesture,
  ) {
    target.addEventListener("wheel", this.onWheel, { passive: false });
    target.addEventListener("pointerdown", this.onDown);
    target.addEventListener("pointermove", this.onMove);
    target.addEventListener("pointerup", this.onUp);
    target.addEventListener("pointercancel", this.onUp);
    target.addEventListener("pointerleave", () => on.leave());
    target.addEventListener("dblclick", (event) => {
      const { x, y } = this.pointOf(event);
      on.doubleClick(x, y);
    });
  }

  private pointOf(event: MouseEvent): Point {
    const box = this.target.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private readonly onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
    const { x, y } = this.pointOf(event);
    if (event.ctrlKey || event.metaKey) this.on.zoom(Math.exp(event.deltaY * unit * PINCH_A_PX), x);
    else if (event.shiftKey) this.on.move(-(event.deltaX || event.deltaY) * unit, 0);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.on.move(-event.deltaX * unit, 0);
    else if (this.on.isOverLabels(x, y)) this.on.move(0, -event.deltaY * unit);
    else this.on.zoom(Math.exp(event.deltaY * unit * ZOOM_A_PX), x);
  };

  private readonly onDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    this.target.setPointerCapture(event.pointerId);
    this.target.focus({ preventScroll: true });
    const point = this.pointOf(event);
    this.down.set(event.pointerId, point);
    if (this.down.size > 1) {
      this.kind = "pan";
      return;
    }
    this.first = point;
    this.kind = this.on.startsRange(point.x, point.y, event.shiftKey) ? "range" : "press";
  };

  private readonly onMove = (event: PointerEvent): void => {
    const point = this.pointOf(event);
    const before = this.down.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType !== "touch") this.on.hover(point.x, point.y, event);
      return;
    }
    this.on.leave();
    if (this.down.size > 1) this.pinch(event.pointerId, before, point);
    else if (this.kind === "range") this.on.range(this.first.x, point.x);
    else if (this.kind === "pan") this.on.move(point.x - before.x, point.y - before.y);
    else if (Math.hypot(point.x - this.first.x, point.y - this.first.y) >= CLICK_PX) {
      this.kind = "pan";
      this.on.move(point.x - this.first.x, point.y - this.first.y);
    }
    this.down.set(event.pointerId, point);
  };

  /** Two fingers: their distance zooms, their middle moves. */
  private pinch(id: number, before: Point, now: Point): void {
    const other = [...this.down].find(([key]) => key !== id)?.[1];
    if (other === undefined) return;
    const [was, is] = [Math.abs(before.x - other.x), Math.abs(now.x - other.x)];
    this.on.move((now.x - before.x) / 2, (now.y - before.y) / 2);
    if (was > 10 && is > 10) this.on.zoom(was / is, (now.x + other.x) / 2);
  }

  private readonly onUp = (event: PointerEvent): void => {
    const point = this.pointOf(event);
    const isClick = this.kind === "press" || (this.kind === "range" && Math.abs(point.x - this.first.x) < CLICK_PX);
    this.down.delete(event.pointerId);
    if (this.down.size > 0) return;
    if (isClick && event.type === "pointerup") this.on.click(point.x, point.y);
    this.kind = "none";
  };
}
