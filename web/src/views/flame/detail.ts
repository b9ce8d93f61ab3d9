// What is said of the row that is chosen: its whole name, its numbers, its callers.

import type { ProfileData } from "../../data/profile";
import { button, element } from "../../ui/element";
import { shareText, valueText } from "../../ui/numbers";
import { printable } from "../../ui/text";
import { linksOf } from "../links";
import { ofRows } from "./colouring";
import type { Forest } from "./forest";
import { nameOfRow, placeText, wholeName } from "./names";

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

export class Detail {
  readonly element = element("section", "detail");

  constructor(
    private readonly data: ProfileData,
    private readonly onRow: (row: number) => void,
    private readonly onOpen: (view: string, state: Record<string, string>) => void,
  ) {
    this.element.setAttribute("aria-live", "polite");
  }

  /** `data` has the metrics of the part of the run that is shown. */
  show(data: ProfileData, forest: Forest, row: number, metric: string): void {
    const values = element("div", "values");
    const rows = [...shares(data, forest, row, metric), ...ownValues(data, forest, row)];
    for (const [name, value] of rows) {
      values.append(element("div", "", element("span", "", `${name} `), value));
    }
    const place = element("span", "place", placeText(this.data, forest, row));
    const name = element("strong", "", printable(wholeName(this.data, forest, row)));
    this.element.replaceChildren(name, " ", place, values, this.path(forest, row), this.links(forest.node[row]));
  }

  private links(node: number): HTMLElement {
    const made = element("div", "links");
    for (const [label, view] of linksOf(this.data, node, ["flame"])) {
      made.append(button(label, () => this.onOpen(view, { node: String(node) })));
    }
    return made;
  }

  private path(forest: Forest, row: number): HTMLElement {
    const path: number[] = [];
    for (let above = row; above >= 0; above = forest.parent[above]) path.unshift(above);
    const nav = element("nav");
    nav.setAttribute("aria-label", "Call path");
    path.forEach((step, index) => {
      const name = printable(nameOfRow(this.data, forest, step));
      nav.append(
        index ? " › " : "",
        button(name, () => this.onRow(step)),
      );
    });
    return nav;
  }
}
