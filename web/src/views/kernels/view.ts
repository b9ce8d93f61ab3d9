import "../../ui/sorted_table.css";
import "./kernels.css";
import type { Configuration, ProfileData } from "../../data/profile";
import { button, element, ends } from "../../ui/element";
import { act } from "../../ui/keys";
import { bytesText, countText, shareText, timeText } from "../../ui/numbers";
import { tester } from "../../ui/search";
import { type Parts, partsApart, printable } from "../../ui/text";
import { searchField, select } from "../../ui/toolbar";
import { linksOf } from "../links";
import type { Host, View } from "../view";
import { COLUMNS, type Column, NAME, sizeText, sorted, usedColumns } from "./columns";
import { GROUPINGS, type Grouping, type Row, rowsOf, variantsOf } from "./rows";

/** More rows are shown when asked for: a page of thousands is slow and nobody reads it. */
const N_SHOWN = 300;

/** The table of kernels. */
export class KernelsView implements View {
  private grouping: Grouping = "kernel";
  private sort = "time";
  private isDescending = true;
  private query = "";
  /** Name of the row whose configurations are shown. */
  private opened = "";
  private showsAll = false;
  private rows: Row[] = [];

  private readonly scroll = element("div", "scroll sorted");
  private readonly note = element("span", "note");
  private readonly field = searchField("Filter: text or /expression/", (query) => this.set(() => (this.query = query)));
  private grouped!: HTMLSelectElement;

  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {}

  mount(parent: HTMLElement): void {
    const options = GROUPINGS.map((name) => [name, name] as [string, string]);
    const [label, control] = select("a row for each", options, (value) =>
      this.set(() => (this.grouping = value as Grouping)),
    );
    this.grouped = control;
    document.addEventListener("keydown", this.onKey);
    parent.append(element("div", "kernels", element("div", "tools", label, this.field, this.note), this.scroll));
  }

  destroy(): void {
    document.removeEventListener("keydown", this.onKey);
  }

  state(): Record<string, string> {
    return {
      by: this.grouping === "kernel" ? "" : this.grouping,
      sort: this.sort === "time" ? "" : this.sort,
      order: this.isDescending ? "" : "up",
      q: this.query,
      kernel: this.opened,
    };
  }

  apply(state: Record<string, string>): void {
    this.grouping = GROUPINGS.find((name) => name === state.by) ?? "kernel";
    this.sort = [NAME, ...COLUMNS].some((column) => column.name === state.sort) ? state.sort : "time";
    this.isDescending = state.order !== "up";
    this.query = state.q ?? "";
    this.opened = this.nameOf(Number(state.node || 0)) || (state.kernel ?? "");
    this.draw();
    this.scroll.querySelector("[aria-expanded=true]")?.scrollIntoView({ block: "center" });
  }

  /** The row of a node that another view chose; empty when it is none. */
  private nameOf(node: number): string {
    const { frame } = this.data.tree;
    if (this.grouping === "module" || !(node > 0 && node < frame.length)) return "";
    return rowsOf(this.data, this.grouping).find((row) => row.frames.includes(frame[node]))?.name ?? "";
  }

  private set(change: () => void): void {
    change();
    this.draw();
    this.host.changed();
  }

  private draw(): void {
    this.grouped.value = this.grouping;
    if (this.field.value !== this.query) this.field.value = this.query;
    const all = rowsOf(this.data, this.grouping);
    const means = tester(this.query);
    this.rows = all.filter((row) => !this.query || means(row.label) || means(row.name));
    const share = this.rows.reduce((sum, row) => sum + row.share, 0);
    this.note.textContent = `${countText(this.rows.length, "row")}, ${shareText(share)} of the GPU time of the whole run`;
    const columns = usedColumns(all);
    const sortColumn = [NAME, ...columns].find((column) => column.name === this.sort) ?? COLUMNS[0];
    const rows = sorted(this.rows, sortColumn, this.isDescending);
    const shown = this.showsAll ? rows : rows.slice(0, N_SHOWN);
    const names = partsApart(shown.map((row) => printable(row.label)));
    const body = element("tbody", "", ...shown.flatMap((row, index) => this.tableRow(row, names[index], columns)));
    const { scrollTop, scrollLeft } = this.scroll;
    this.scroll.replaceChildren(element("table", "", element("thead", "", this.head(columns)), body));
    if (shown.length < rows.length) this.scroll.append(this.moreButton(rows.length - shown.length));
    this.scroll.scrollTo(scrollLeft, scrollTop);
  }

  private head(columns: Column[]): HTMLElement {
    return element("tr", "", ...[NAME, ...columns].map((column) => this.headCell(column)));
  }

  private headCell(column: Column): HTMLElement {
    const isSorted = this.sort === column.name;
    const sort = button(column.label, () =>
      this.set(() => {
        this.isDescending = isSorted ? !this.isDescending : column !== NAME;
        this.sort = column.name;
      }),
    );
    sort.title = column.meaning;
    const cell = element("th", "", sort);
    if (isSorted) cell.setAttribute("aria-sort", this.isDescending ? "descending" : "ascending");
    return cell;
  }

  private tableRow(row: Row, parts: Parts, columns: Column[]): HTMLElement[] {
    const name = element("td", "name", element("span", "ends", ...ends(parts)));
    if (this.grouping === "kernel" && row.frames.length > 1) {
      name.append(element("small", "", `${row.frames.length} variants`));
    }
    name.title = printable(row.name);
    name.setAttribute("aria-label", printable(row.label));
    const cells = columns.map((column) => element("td", column.name, column.text(row)));
    const made = element("tr", "row", name, ...cells);
    made.style.setProperty("--share", `${row.share * 100}%`);
    made.tabIndex = 0;
    const isOpen = row.name === this.opened;
    made.setAttribute("aria-expanded", String(isOpen));
    const toggle = () => this.set(() => (this.opened = isOpen ? "" : row.name));
    made.onclick = toggle;
    made.onkeydown = (event) => {
      if (event.key === "Enter") toggle();
    };
    return isOpen ? [made, this.details(row, columns.length + 1)] : [made];
  }

  private details(row: Row, n_columns: number): HTMLElement {
    const inner = element("div", "inner", element("code", "", printable(row.name)));
    const variants = variantsOf(this.data, row, this.grouping);
    if (variants.length > 0) inner.append(variantTable(variants, row));
    if (row.bound) inner.append(element("p", "", `Below the roof of ${row.bound}.`));
    if (row.configurations.length) inner.append(configurationTable(row.configurations));
    const node = String(this.hottestNode(row));
    inner.append(
      this.link("Hottest call path", "flame", { node }),
      this.link("Callers", "flame", { node, direction: "up" }),
    );
    for (const [label, view] of linksOf(this.data, Number(node), ["flame", "kernels"])) {
      inner.append(this.link(label, view, { node }));
    }
    const cell = element("td", "", inner);
    cell.colSpan = n_columns;
    return element("tr", "more", cell);
  }

  private link(text: string, view: string, state: Record<string, string>): HTMLElement {
    return button(text, () => this.host.open(view, state));
  }

  private hottestNode(row: Row): number {
    const frames = new Set(row.frames);
    const own = this.data.metrics.gpu_time.own;
    let found = 0;
    for (let node = 1; node < own.length; node++) {
      if (frames.has(this.data.tree.frame[node]) && own[node] > 0 && !(own[found] >= own[node])) found = node;
    }
    return found;
  }

  private moreButton(n_more: number): HTMLElement {
    return button(`Show ${countText(n_more, "more row")}`, () => {
      this.showsAll = true;
      this.draw();
    });
  }

  private readonly onKey = (event: KeyboardEvent): void => act(event, { "/": () => this.field.focus() });
}

/** Why there is no table; empty: there is one. */
export function kernelsLack(data: ProfileData): string {
  return data.kernels.length ? "" : "The profile has no kernels: record a program that runs on a GPU.";
}

/** Variants differ in the ends of their names, which therefore stand whole. */
function variantTable(variants: Row[], { time_ns }: Row): HTMLElement {
  const rows = variants.map((one) => {
    const values = [timeText(one.time_ns), shareText(one.time_ns / time_ns), countText(one.count, "", "").trim()];
    const name = element("td", "variant", printable(one.name));
    return element("tr", "", ...values.map((text) => element("td", "", text)), name);
  });
  const head = ["time", "share", "calls", "variant"].map((text) => element("th", "", text));
  return element("table", "", element("thead", "", element("tr", "", ...head)), element("tbody", "", ...rows));
}

function configurationTable(configurations: Configuration[]): HTMLElement {
  const head = [
    "launches",
    "grid",
    "block",
    "cluster",
    "registers",
    "shared",
    "local / thread",
    "occupancy",
    "limited by",
  ];
  const rows = configurations.map((item) => [
    countText(item.count, "", "").trim(),
    sizeText(item.grid),
    sizeText(item.block),
    item.cluster ? sizeText(item.cluster) : "–",
    String(item.registers),
    bytesText(item.shared_bytes),
    bytesText(item.local_bytes_per_thread),
    shareText(item.occupancy),
    item.occupancy_limit || "–",
  ]);
  return element(
    "table",
    "",
    element("thead", "", element("tr", "", ...head.map((text) => element("th", "", text)))),
    element("tbody", "", ...rows.map((row) => element("tr", "", ...row.map((text) => element("td", "", text))))),
  );
}
