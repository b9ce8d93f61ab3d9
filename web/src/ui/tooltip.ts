import { element, pairs } from "./element";
import { printable } from "./text";

const MARGIN_PX = 12;

/** A box beside the pointer: a title, and rows of a name and a value. One a view; `destroy` removes it. */
export class Tooltip {
  private readonly box = element("div", "tooltip");

  constructor() {
    this.box.setAttribute("role", "tooltip");
    this.box.hidden = true;
    document.body.append(this.box);
  }

  /** Show it beside a point of the window. */
  show(x: number, y: number, title: string, rows: [string, string][]): void {
    this.box.replaceChildren(element("strong", "", printable(title)), pairs(rows));
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const left = x + MARGIN_PX + width > innerWidth ? x - MARGIN_PX - width : x + MARGIN_PX;
    const top = y + MARGIN_PX + height > innerHeight ? y - MARGIN_PX - height : y + MARGIN_PX;
    this.box.style.transform = `translate(${Math.max(left, 4)}px, ${Math.max(top, 4)}px)`;
  }

  hide(): void {
    this.box.hidden = true;
  }

  destroy(): void {
    this.box.remove();
  }
}
