// Draws a flame graph on a canvas of the size of its window, and finds what is under the pointer.

import { inkOn } from "../../ui/colours";
import { cutBelow, printable } from "../../ui/text";
import type { Forest } from "./forest";
import { type Box, boxes } from "./layout";

export const ROW_HEIGHT = 20;
const TEXT_HEIGHT = 12;
const PADDING = 4;
const LEAST_TEXT_WIDTH = 24;
const FADED = 0.35;

export interface Look {
  colour(row: number): string;
  name(row: number): string;
  /** What the row above is called; empty: none is. */
  caller(row: number): string;
  /** File and line, which give way first. */
  place(row: number): string;
  /** Of what was searched for. */
  match: string;
  /** Stripe at the left of the box; empty: none. */
  mark(row: number): string;
  isMatch: Uint8Array | null;
  ground: string;
  ink: string;
  rest: string;
}

export class Picture {
  private found: Box[] = [];
  /** Levels of callers above the others. */
  n_above = 0;
  private letterWidth = 7;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  /** Lay out; `draw` shows it. */
  layOut(forest: Forest, zoomed: number, width: number): void {
    this.found = boxes(forest, zoomed, width);
    this.n_above = 0;
    if (!forest.callers) return;
    // Callers stand upside down on what they called.
    const callers = boxes(forest, forest.callers, width);
    const n_above = callers.reduce((most, box) => Math.max(most, box.depth), 0);
    this.n_above = n_above;
    for (const box of this.found) box.depth += n_above;
    for (const box of callers) if (box.depth > 0) this.found.push({ ...box, depth: n_above - box.depth });
  }

  /** Levels of the picture. */
  get n_levels(): number {
    return this.found.reduce((most, box) => Math.max(most, box.depth + 1), 0);
  }

  /** The boxes from `top` px down, on a canvas of this size. */
  draw(look: Look, top: number, width: number, height: number, selected: number): void {
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    const paper = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    paper.setTransform(scale, 0, 0, scale, 0, -top * scale);
    paper.fillStyle = look.ground;
    paper.fillRect(0, top, width, height);
    paper.font = `${TEXT_HEIGHT}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace`;
    paper.textBaseline = "middle";
    this.letterWidth = paper.measureText("m").width;
    const first = Math.floor(top / ROW_HEIGHT);
    const last = Math.ceil((top + height) / ROW_HEIGHT);
    for (const box of this.found) {
      if (box.depth < first || box.depth > last) continue;
      if (box.row < 0) this.drawRest(paper, box, look);
      else this.drawBox(paper, box, look, box.row === selected);
    }
  }

  /** The box at a point of the picture. */
  at(x: number, y: number): Box | undefined {
    const depth = Math.floor(y / ROW_HEIGHT);
    return this.found.find((box) => box.depth === depth && x >= box.x && x < box.x + box.width);
  }

  private drawBox(paper: CanvasRenderingContext2D, box: Box, look: Look, isSelected: boolean): void {
    const y = box.depth * ROW_HEIGHT;
    const isFaded = look.isMatch !== null && !look.isMatch[box.row];
    const colour = look.isMatch?.[box.row] ? look.match : look.colour(box.row);
    paper.globalAlpha = isFaded ? FADED : 1;
    paper.fillStyle = colour;
    paper.fillRect(box.x, y, Math.max(box.width - 0.6, 0.6), ROW_HEIGHT - 1);
    paper.globalAlpha = 1;
    const mark = look.mark(box.row);
    if (mark && box.width > PADDING) {
      paper.fillStyle = mark;
      paper.fillRect(box.x, y, 3, ROW_HEIGHT - 1);
    }
    if (box.width >= LEAST_TEXT_WIDTH) {
      const letters = Math.floor((box.width - 2 * PADDING) / this.letterWidth);
      paper.fillStyle = isFaded ? look.ink : inkOn(colour);
      paper.fillText(textOf(look, box.row, letters), box.x + PADDING, y + ROW_HEIGHT / 2, box.width - 2 * PADDING);
    }
    if (isSelected) {
      paper.strokeStyle = look.ink;
      paper.lineWidth = 2;
      paper.strokeRect(box.x + 1, y + 1, Math.max(box.width - 2.6, 1), ROW_HEIGHT - 3);
    }
  }

  private drawRest(paper: CanvasRenderingContext2D, box: Box, look: Look): void {
    paper.fillStyle = look.rest;
    paper.fillRect(box.x, box.depth * ROW_HEIGHT, Math.max(box.width - 0.6, 0.6), ROW_HEIGHT - 1);
  }
}

/** Name and place; where there is no room for both the name, of which what its caller's name says gives way first. */
function textOf(look: Look, row: number, letters: number): string {
  const [name, place] = [look.name(row), look.place(row)];
  if (name.length + place.length < letters) return printable(`${name} ${place}`.trimEnd());
  return cutBelow(name, look.caller(row), letters);
}
