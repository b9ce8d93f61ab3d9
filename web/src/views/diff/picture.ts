// Draws one side of a difference on a canvas, and finds what is under the pointer.

import type { Tree } from "../../data/profile";
import { changeColour, inkOn, OKABE_ITO, type Theme } from "../../ui/colours";
import { cutMiddle } from "../../ui/text";
import { type Box, boxesOf, changeShare, fateOf, type Side, type Sides } from "./sides";

export const ROW_HEIGHT = 20;
const PADDING = 4;
const LEAST_TEXT_WIDTH = 24;
const FADED = 0.3;
/** Before the name of what only one side has. */
const MARKS = { new: "+ ", gone: "- ", longer: "", shorter: "", same: "" };

export interface Look {
  name(node: number): string;
  isMatch: Uint8Array | null;
  theme: Theme;
  ground: string;
  ink: string;
}

export class Picture {
  readonly canvas = document.createElement("canvas");
  private boxes: Box[] = [];

  constructor(
    private readonly tree: Tree,
    private readonly sides: Sides,
    private readonly side: Side,
  ) {}

  /** Lay out; `draw` shows it. Returns how many levels there are. */
  layOut(zoomed: number, scale: number): number {
    this.boxes = boxesOf(this.tree, this.sides, this.side, zoomed, scale);
    return this.boxes.reduce((most, box) => Math.max(most, box.depth + 1), 0);
  }

  /** The boxes from `top` px down, on a canvas of this size. */
  draw(look: Look, top: number, width: number, height: number, selected: number): void {
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    const paper = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    paper.setTransform(scale, 0, 0, scale, 0, -top * scale);
    paper.fillStyle = look.ground;
    paper.fillRect(0, top, width, height);
    paper.font = '12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';
    paper.textBaseline = "middle";
    const letter = paper.measureText("m").width;
    const first = Math.floor(top / ROW_HEIGHT);
    const last = Math.ceil((top + height) / ROW_HEIGHT);
    for (const box of this.boxes) {
      if (box.depth >= first && box.depth <= last) this.drawBox(paper, box, look, letter, box.node === selected);
    }
  }

  /** The node at a point of the whole picture; -1: none. */
  at(x: number, y: number): number {
    const depth = Math.floor(y / ROW_HEIGHT);
    return this.boxes.find((box) => box.depth === depth && x >= box.x && x < box.x + box.width)?.node ?? -1;
  }

  private drawBox(paper: CanvasRenderingContext2D, box: Box, look: Look, letter: number, isSelected: boolean): void {
    const [before, after] = [this.sides.before[box.node], this.sides.after[box.node]];
    const fate = fateOf(before, after);
    const y = box.depth * ROW_HEIGHT;
    const width = Math.max(box.width - 0.6, 0.6);
    const isFaded = look.isMatch !== null && !look.isMatch[box.node];
    const colour = changeColour(changeShare(before, after), look.theme);
    paper.globalAlpha = isFaded ? FADED : 1;
    paper.fillStyle = colour;
    paper.fillRect(box.x, y, width, ROW_HEIGHT - 1);
    paper.globalAlpha = 1;
    if (fate === "new" || fate === "gone") {
      paper.fillStyle = fate === "new" ? OKABE_ITO.vermilion : OKABE_ITO.blue;
      paper.fillRect(box.x, y, Math.min(4, width), ROW_HEIGHT - 1);
    }
    if (box.width >= LEAST_TEXT_WIDTH) {
      const letters = Math.floor((box.width - 3 * PADDING) / letter);
      paper.fillStyle = isFaded ? look.ink : inkOn(colour);
      paper.fillText(cutMiddle(MARKS[fate] + look.name(box.node), letters), box.x + 2 * PADDING, y + ROW_HEIGHT / 2);
    }
    if (isSelected) {
      paper.strokeStyle = look.ink;
      paper.lineWidth = 2;
      paper.strokeRect(box.x + 1, y + 1, Math.max(width - 2, 1), ROW_HEIGHT - 3);
    }
  }
}
