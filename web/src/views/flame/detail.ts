// What is said of the row that is chosen: its whole name, its numbers, its callers.

import type { FrameKind, ProfileData } from "../../data/profile";
import { KIND_NAMES } from "../../ui/colours";
import { element } from "../../ui/element";
import { shareText, valueText } from "../../ui/numbers";
import { printable } from "../../ui/text";
import { nameOfRow, ofRows } from "./colouring";
import type { Forest } from "./forest";

/** Value and shares of a row. */
export function shares(data: ProfileData, forest: Forest, row: number, metric: string): [string, string][] {
  const unit = data.metrics[metric].unit;
  const value = forest.value[row];
  const below = forest.parent[row] >= 0 ? forest.value[forest.parent[row]] : value;
  return [
    [metric, `${valueText(value, unit)}, ${shareText(value / forest.value[0])} of all`],
    ["of the box above", shareText(value / below)],
  ];
}

/** What is known of a row itself, metric by metric. */
function ownValues(data: ProfileData, forest: Forest, row: number): [string, string][] {
  const found: [string, string][] = [];
  for (const [name, other] of Object.entries(data.metrics)) {
    const own = ofRows(data, forest, other)[row];
    if (!Number.isNaN(own)) found.push([`${name} of its own`, valueText(own, other.unit)]);
  }
  return found;
}

/** File and line, or what kind of thing it is. */
export function placeText(data: ProfileData, forest: Forest, row: number): string {
  const key = forest.key[row];
  if (key >= data.frames.kind.length) return "library";
  const kind = KIND_NAMES[data.frames.kind[key] as FrameKind];
  if (row === 0) return "";
  const line = data.frames.line[key];
  const file = printable(data.frames.file[key]);
  return file ? `${kind}, ${file}${line ? `:${line}` : ""}` : kind;
}

/** The whole name; of kernels as the program gave it. */
export function wholeName(data: ProfileData, forest: Forest, row: number): string {
  const key = forest.key[row];
  return key < data.frames.kind.length && row > 0 ? data.frames.name[key] : nameOfRow(data, forest, row);
}

export class Detail {
  readonly element = element("section", "detail");

  constructor(
    private readonly data: ProfileData,
    private readonly onRow: (row: number) => void,
  ) {
    this.element.setAttribute("aria-live", "polite");
  }

  show(forest: Forest, row: number, metric: string): void {
    const values = element("div", "values");
    const rows = [...shares(this.data, forest, row, metric), ...ownValues(this.data, forest, row)];
    for (const [name, value] of rows) {
      values.append(element("div", "", element("span", "", `${name} `), value));
    }
    const place = element("span", "place", placeText(this.data, forest, row));
    const name = element("strong", "", printable(wholeName(this.data, forest, row)));
    this.element.replaceChildren(name, " ", place, values, this.path(forest, row));
  }

  private path(forest: Forest, row: number): HTMLElement {
    const path: number[] = [];
    for (let above = row; above >= 0; above = forest.parent[above]) path.unshift(above);
    const nav = element("nav");
    nav.setAttribute("aria-label", "Call path");
    path.forEach((step, index) => {
      const button = element("button", "", printable(nameOfRow(this.data, forest, step)));
      button.type = "button";
      button.onclick = () => this.onRow(step);
      nav.append(index ? " › " : "", button);
    });
    return nav;
  }
}
