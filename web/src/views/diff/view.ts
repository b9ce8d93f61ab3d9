import "../../ui/sorted_table.css";
import "./diff.css";
import type { ChangedRow, DifferenceData } from "../../data/difference";
import type { ProfileData } from "../../data/profile";
import { labelOf, pathOf } from "../../data/tree";
import { changeColour, OKABE_ITO } from "../../ui/colours";
import { button, element, ends } from "../../ui/element";
import { act } from "../../ui/keys";
import { countText, valueText } from "../../ui/numbers";
import { tester } from "../../ui/search";
import { type Parts, partsApart, printable } from "../../ui/text";
import { legendItem, searchField } from "../../ui/toolbar";
import { Tooltip } from "../../ui/tooltip";
import type { Host, View } from "../view";
import { Picture, ROW_HEIGHT } from "./picture";
import { COLUMNS, relativeText, signed, sorted } from "./rows";
import { neighbour, type Side, type Sides, scaleOf, sidesOf } from "./sides";

const N_SHOWN = 200;
const LONGEST_PATH = 12;
/** Of each side; diff.css says the same. */
const TITLE_HEIGHT = 26;

/** Two profiles beside each other on one scale, and a table of what changed. */
export class DifferenceView implements View {
  private readonly difference: DifferenceData;
  private readonly sides: Sides;
  private readonly pictures: Record<Side, Picture>;
  private selected = 0;
  private zoomed = 0;
  private query = "";
  private sort = "change";
  private isDescending = true;

  private readonly scroll = element("div", "scroll");
  private readonly sections: Record<Side, HTMLElement>;
  private readonly detail = element("p", "detail");
  private readonly note = element("span", "note");
  private readonly table = element("div", "rows sorted");
  private readonly field = searchField("Search: text or /expression/", (query) => this.set(() => (this.query = query)));
  private readonly tooltip = new Tooltip();
  private readonly resized = new ResizeObserver(() => this.drawSides());

  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {
    this.difference = data.difference as DifferenceData;
    const { before, after } = data.metrics;
    this.sides = sidesOf(data.tree, before.own, after.own);
    this.pictures = {
      before: new Picture(data.tree, this.sides, "before"),
      after: new Picture(data.tree, this.sides, "after"),
    };
    this.sections = { before: this.section("before"), after: this.section("after") };
  }

  mount(parent: HTMLElement): void {
    document.addEventListener("keydown", this.onKey);
    this.scroll.tabIndex = 0;
    this.scroll.setAttribute("aria-label", "Flame graphs before and after");
    this.scroll.append(this.sections.before, this.sections.after);
    this.scroll.onscroll = () => this.drawSides();
    const tools = element("div", "tools", this.field, this.note, this.legend());
    parent.append(element("div", "difference", tools, this.scroll, this.detail, this.table));
    this.resized.observe(this.scroll);
  }

  destroy(): void {
    document.removeEventListener("keydown", this.onKey);
    this.resized.disconnect();
    this.tooltip.destroy();
  }

  state(): Record<string, string> {
    return {
      q: this.query,
      sort: this.sort === "change" ? "" : this.sort,
      order: this.isDescending ? "" : "up",
      node: this.selected ? String(this.selected) : "",
      zoom: this.zoomed ? String(this.zoomed) : "",
    };
  }

  apply(state: Record<string, string>): void {
    this.query = state.q ?? "";
    this.sort = COLUMNS.some((column) => column.name === state.sort) ? state.sort : "change";
    this.isDescending = state.order !== "up";
    this.selected = this.node(state.node);
    this.zoomed = this.node(state.zoom);
    this.draw();
  }

  private node(text: string | undefined): number {
    const node = Number(text || 0);
    return Number.isInteger(node) && node >= 0 && node < this.data.tree.parent.length ? node : 0;
  }

  private set(change: () => void): void {
    change();
    this.draw();
    this.host.changed();
  }

  private section(side: Side): HTMLElement {
    const { canvas } = this.pictures[side];
    canvas.onclick = (event) => {
      const node = this.nodeAt(side, event);
      if (node >= 0) this.choose(node, node);
    };
    canvas.onmousemove = (event) => this.onMove(event, this.nodeAt(side, event));
    canvas.onmouseleave = () => this.tooltip.hide();
    const total = valueText(this.sides[side][0], this.difference.unit);
    const title = element("h2", "", `${side}: ${printable(this.difference[side])}, ${total}`);
    return element("section", "", title, canvas);
  }

  /** How much of a side is scrolled out above. */
  private topOf(side: Side): number {
    return Math.max(this.scroll.scrollTop - this.sections[side].offsetTop, 0);
  }

  private nodeAt(side: Side, event: MouseEvent): number {
    return this.pictures[side].at(event.offsetX, event.offsetY + this.topOf(side));
  }

  private choose(node: number, zoomed: number): void {
    this.set(() => {
      this.selected = node;
      this.zoomed = zoomed;
    });
  }

  private onMove(event: MouseEvent, node: number): void {
    if (node < 0) this.tooltip.hide();
    else this.tooltip.show(event.clientX, event.clientY, labelOf(this.data, node), this.values(node));
  }

  private values(node: number): [string, string][] {
    const { unit } = this.difference;
    const [before, after] = [this.sides.before[node], this.sides.after[node]];
    return [
      ["before", valueText(before, unit)],
      ["after", valueText(after, unit)],
      ["change", `${signed(after - before, unit)} (${relativeText(before, after)})`],
    ];
  }

  private draw(): void {
    if (this.field.value !== this.query) this.field.value = this.query;
    const texts = this.values(this.selected).map(([name, text]) => `${name} ${text}`);
    const names = pathOf(this.data.tree, this.selected).map((node) => printable(labelOf(this.data, node)));
    const path = names.length > LONGEST_PATH ? ["…", ...names.slice(-LONGEST_PATH)] : names;
    this.detail.replaceChildren(element("strong", "", path.join(" > ")), ` ${texts.join(", ")}`);
    this.drawSides();
    this.drawTable();
  }

  private drawSides(): void {
    const width = this.pictures.before.canvas.clientWidth;
    if (!width) return;
    const scale = scaleOf(this.sides, this.zoomed, width);
    const style = getComputedStyle(document.documentElement);
    const look = {
      name: (node: number) => printable(labelOf(this.data, node)),
      isMatch: this.matches(),
      theme: this.host.theme,
      ground: style.getPropertyValue("--ground"),
      ink: style.getPropertyValue("--ink"),
    };
    const sides: Side[] = ["before", "after"];
    const levels = Math.max(...sides.map((side) => this.pictures[side].layOut(this.zoomed, scale)));
    const height = Math.min(levels * ROW_HEIGHT, this.scroll.clientHeight - TITLE_HEIGHT);
    for (const side of sides) {
      this.sections[side].style.height = `${levels * ROW_HEIGHT + TITLE_HEIGHT}px`;
      this.pictures[side].draw(look, this.topOf(side), width, height, this.selected);
    }
  }

  private matches(): Uint8Array | null {
    if (!this.query) return null;
    const means = tester(this.query);
    const isMatch = this.data.frames.label.map((label, frame) => means(label) || means(this.data.frames.name[frame]));
    return Uint8Array.from(this.data.tree.frame, (frame) => Number(isMatch[frame]));
  }

  private drawTable(): void {
    const means = tester(this.query);
    const all = sorted(this.difference, this.sort, this.isDescending);
    const rows = all.filter((row) => !this.query || means(row.label));
    const change = rows.reduce((sum, row) => sum + row.after - row.before, 0);
    const summed = `${countText(rows.length, "row")}, ${signed(change, this.difference.unit)}`;
    this.note.textContent = [summed, this.difference.note].filter(Boolean).join("; ");
    const most = Math.max(...rows.map((row) => Math.abs(row.after - row.before)), Number.MIN_VALUE);
    const shown = rows.slice(0, N_SHOWN);
    const names = partsApart(shown.map((row) => printable(row.label)));
    const body = element("tbody", "", ...shown.map((row, index) => this.row(row, names[index], most)));
    this.table.replaceChildren(element("table", "", element("thead", "", this.head()), body));
    if (rows.length > N_SHOWN)
      this.table.append(element("p", "", `${countText(rows.length - N_SHOWN, "more row")}: search for them.`));
  }

  private head(): HTMLElement {
    const cells = COLUMNS.map((column) => {
      const isSorted = this.sort === column.name;
      const sort = button(column.label, () =>
        this.set(() => {
          this.isDescending = isSorted ? !this.isDescending : column.name !== "name";
          this.sort = column.name;
        }),
      );
      const cell = element("th", column.name, sort);
      if (isSorted) cell.setAttribute("aria-sort", this.isDescending ? "descending" : "ascending");
      return cell;
    });
    return element("tr", "", ...cells);
  }

  private row(row: ChangedRow, parts: Parts, most: number): HTMLElement {
    const cells = COLUMNS.map((column) =>
      element("td", column.name, printable(column.text(row, this.difference.unit))),
    );
    const change = row.after - row.before;
    const [name, share] = cells;
    share.style.setProperty("--share", `${(Math.abs(change) / most) * 100}%`);
    share.style.setProperty("--bar", changeColour(Math.sign(change) * 0.5, this.host.theme));
    name.title = printable(row.label);
    name.replaceChildren(element("span", "ends", ...ends(parts)));
    return element("tr", "", ...cells);
  }

  private legend(): HTMLElement {
    const { theme } = this.host;
    const rows: [string, string][] = [
      [changeColour(1, theme), "longer"],
      [changeColour(-1, theme), "shorter"],
      [changeColour(0, theme), "the same"],
      [OKABE_ITO.vermilion, "+ new"],
      [OKABE_ITO.blue, "- gone"],
    ];
    return element("span", "legend", ...rows.map(([colour, text]) => legendItem(colour, text)));
  }

  private readonly onKey = (event: KeyboardEvent): void => act(event, this.keys());

  private keys(): Record<string, () => void> {
    const step = (key: string) => () => {
      const node = neighbour(this.data.tree, this.sides, this.selected, key);
      this.choose(node, key === "ArrowUp" && node < this.zoomed ? node : this.zoomed);
    };
    return {
      ArrowDown: step("ArrowDown"),
      ArrowUp: step("ArrowUp"),
      ArrowLeft: step("ArrowLeft"),
      ArrowRight: step("ArrowRight"),
      Enter: () => this.choose(this.selected, this.selected),
      Escape: () => this.choose(this.selected, Math.max(this.data.tree.parent[this.zoomed], 0)),
      "0": () => this.choose(0, 0),
      "/": () => this.field.focus(),
    };
  }
}
