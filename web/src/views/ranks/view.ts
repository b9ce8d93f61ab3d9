import "./ranks.css";
import type { ProfileData } from "../../data/profile";
import type { LaneBar, RankRow, Ranks, StepLanes } from "../../data/ranks";
import { heatColour } from "../../ui/colours";
import { element } from "../../ui/element";
import { shareText, timeText } from "../../ui/numbers";
import { printable } from "../../ui/text";
import { Choice } from "../../ui/toolbar";
import type { Host, View } from "../view";
import { cellHeat, cellText, rowTexts } from "./cells";
import { barText, longestWait, place } from "./lanes";

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
    if (ranks.lanes.length > 0) root.append(...this.steps(ranks));
    if (ranks.ideas.length > 0) root.append(element("h3", "", "Critical path"), ...paragraphs(ranks.ideas));
    if (ranks.transfers.length > 0)
      root.append(element("h3", "", "Transfers, without waiting (bus bandwidth)"), ...paragraphs(ranks.transfers));
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

  /** The steps that cost most, of which one is shown. */
  private steps(ranks: Ranks): HTMLElement[] {
    const { unit, lanes } = ranks;
    const [first] = lanes;
    if (lanes.length === 1) {
      const title = `Who waits for whom in ${unit} ${first.step}, which costs most`;
      return [element("h3", "", title), ...this.lanes(ranks, first)];
    }
    const body = element("div", "", ...this.lanes(ranks, first));
    const options = lanes.map(({ step }, index): [string, string] => [String(index), `${unit} ${step}`]);
    const choice = new Choice(`${unit}, those that cost most first`, options, (chosen) => {
      choice.value = chosen;
      body.replaceChildren(...this.lanes(ranks, lanes[Number(chosen)]));
    });
    choice.value = "0";
    const title = `Who waits for whom in the ${unit}s that cost most`;
    return [element("h3", "", title), element("p", "", choice.element), body];
  }

  private lanes({ unit, shown }: Ranks, lanes: StepLanes): HTMLElement[] {
    const rows = lanes.rows.map(({ rank, bars }) => {
      const lane = element("div", "lane", ...bars.flatMap((bar) => this.bar(lanes, rank, bar)));
      lane.setAttribute("role", "img");
      lane.setAttribute("aria-label", bars.map((bar) => barText(rank, bar)).join("; "));
      return element(
        "tr",
        "",
        element("th", rank === shown ? "shown" : "", String(rank)),
        element("td", "steps", lane),
      );
    });
    const head = ["rank", `${unit} ${lanes.step}, ${timeText(lanes.length_ns)}`];
    const table = element("table", "heat lanes", element("thead", "", element("tr", "", ...head.map(headCell))));
    table.append(element("tbody", "", ...rows));
    const legend = element("p", "dim", this.key("wait"), "waits for the last rank  ", this.key("transfer"), "transfer");
    const more = lanes.left_out > 0 ? ` ${lanes.left_out} more collectives follow.` : "";
    const said = element("p", "", `${longestWait(lanes)}${more}`);
    return [said, element("div", "scroll", table), legend];
  }

  /** The wait in a collective, and its transfer. */
  private bar(lanes: StepLanes, rank: number, bar: LaneBar): HTMLElement[] {
    const [begin, arrived, end] = bar.times_ns;
    const parts = [this.key("wait"), this.key("transfer")];
    const spans = [place(lanes, begin, arrived), place(lanes, arrived, end)];
    for (const [index, part] of parts.entries()) {
      part.style.left = `${spans[index][0]}%`;
      part.style.width = `${spans[index][1]}%`;
      part.title = barText(rank, bar);
    }
    return parts;
  }

  private key(part: "wait" | "transfer"): HTMLElement {
    const mark = element("i", part);
    if (part === "wait") mark.style.background = heatColour(0.5, this.host.theme);
    return mark;
  }
}

function headCell(text: string): HTMLElement {
  return element("th", "", text);
}

function paragraphs(texts: string[]): HTMLElement[] {
  return texts.map((text) => element("p", "", printable(text)));
}
