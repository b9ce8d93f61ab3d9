import "./ranks.css";
import type { ProfileData } from "../../data/profile";
import type { RankRow, Ranks } from "../../data/ranks";
import { heatColour } from "../../ui/colours";
import { element } from "../../ui/element";
import { shareText } from "../../ui/numbers";
import { printable } from "../../ui/text";
import type { Host, View } from "../view";
import { cellHeat, cellText, rowTexts } from "./cells";

/** Which rank of the job the others wait for, in which steps, and what the job would save. */
export class RanksView implements View {
  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {}

  mount(parent: HTMLElement): void {
    const ranks = this.data.ranks as Ranks;
    const root = element("div", "ranks-page", element("h2", "", printable(ranks.sentence)));
    for (const { text, hint } of ranks.findings) {
      const said = element("p", "straggler", printable(text));
      if (hint) said.append(element("span", "hint", hint));
      root.append(said);
    }
    if (ranks.rows.length > 0) root.append(...this.heatMap(ranks));
    if (ranks.ideas.length > 0) root.append(element("h3", "", "Critical path"), ...paragraphs(ranks.ideas));
    if (ranks.notes.length > 0) root.append(element("h3", "", "Notes"), ...paragraphs(ranks.notes));
    if (ranks.shown !== null) root.append(element("p", "dim", `The other tabs show rank ${ranks.shown}.`));
    parent.append(root);
  }

  destroy(): void {}

  state(): Record<string, string> {
    return {};
  }

  apply(): void {}

  private heatMap(ranks: Ranks): HTMLElement[] {
    const last = ranks.edges[ranks.edges.length - 1] - 1;
    const head = ["rank", `${ranks.unit}s 1 to ${last}`, "cost to the others", "of the critical path", "slack"];
    const table = element("table", "heat", element("thead", "", element("tr", "", ...head.map(headCell))));
    table.append(element("tbody", "", ...ranks.rows.map((row) => this.row(ranks, row))));
    const made: HTMLElement[] = [element("h3", "", "Who holds up the others"), element("div", "scroll", table)];
    if (ranks.rest !== null) made.push(element("p", "dim", `Every other rank costs at most ${shareText(ranks.rest)}.`));
    return made;
  }

  private row(ranks: Ranks, row: RankRow): HTMLElement {
    const cells = element("div", "cells");
    cells.setAttribute("role", "img");
    cells.setAttribute("aria-label", `rank ${row.rank} costs the others ${shareText(row.share)}`);
    for (const [column, cost] of row.cost_ns.entries()) {
      const cell = element("i", "");
      cell.style.background = heatColour(cellHeat(ranks, cost), this.host.theme);
      cell.title = cellText(ranks, row, column);
      cells.append(cell);
    }
    const name = element("th", row.rank === ranks.shown ? "shown" : "", String(row.rank));
    name.title = printable(row.host);
    const numbers = rowTexts(row).map((text) => element("td", "number", text));
    return element("tr", "", name, element("td", "steps", cells), ...numbers);
  }
}

function headCell(text: string): HTMLElement {
  return element("th", "", text);
}

function paragraphs(texts: string[]): HTMLElement[] {
  return texts.map((text) => element("p", "", printable(text)));
}
