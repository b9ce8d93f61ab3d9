import "./flame.css";
import type { ProfileData } from "../../data/profile";
import { MATCH, PASSES } from "../../ui/colours";
import { element } from "../../ui/element";
import { act } from "../../ui/keys";
import { countText } from "../../ui/numbers";
import { Tooltip } from "../../ui/tooltip";
import type { Host, View } from "../view";
import { colouring, legendOf } from "./colouring";
import { Controls } from "./controls";
import { Detail, shares } from "./detail";
import { bottomUp, type Forest, sandwich, topDown } from "./forest";
import { isAtOrAbove, neighbour } from "./layout";
import { nameOfRow, placeOfRow, placeText } from "./names";
import { Phase, phases } from "./phase";
import { type Look, Picture, ROW_HEIGHT } from "./picture";
import { search } from "./search";
import { ofPart, parseSettings, type Settings, settingsState, usualSettings, widthMetrics } from "./settings";

/** Selecting a row with less than this share of the whole zooms to it: it would hardly be seen. */
const LEAST_SEEN = 0.02;
/** Settings that decide which rows there are. */
const CHANGE_ROWS: (keyof Settings)[] = ["part", "metric", "direction", "folds"];

/** The call tree as an icicle: width is what a metric says. */
export class FlameView implements View {
  private settings: Settings;
  private forest!: Forest;
  /** The settings that the forest was made for. */
  private grownFor = "";
  private look!: Look;
  private selected = 0;
  private zoomed = 0;
  /** Of a sandwich: a node of the name in its middle. */
  private middle = 0;
  private readonly backward: Uint8Array;
  /** The profile with the metrics of the part of the run that is shown. */
  private shown: ProfileData;

  private readonly canvas = element("canvas");
  private readonly picture = new Picture(this.canvas);
  private readonly scroll = element("div", "scroll");
  private readonly spacer = element("div", "spacer");
  private readonly detail: Detail;
  private readonly tooltip = new Tooltip();
  private readonly resized = new ResizeObserver(() => this.redraw());
  private readonly controls: Controls;

  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {
    this.settings = usualSettings(data);
    this.shown = data;
    this.controls = new Controls(data, (changed) => this.set(changed));
    this.backward = phases(data);
    const open = (view: string, state: Record<string, string>) => host.open(view, state);
    this.detail = new Detail(data, (row) => this.choose(row, row), open);
  }

  mount(parent: HTMLElement): void {
    this.scroll.tabIndex = 0;
    this.scroll.setAttribute("aria-label", "Flame graph");
    this.scroll.append(this.canvas, this.spacer);
    this.canvas.onclick = (event) => this.onClick(event);
    this.canvas.onmousemove = (event) => this.onMove(event);
    this.canvas.onmouseleave = () => this.tooltip.hide();
    this.scroll.onscroll = () => this.draw();
    document.addEventListener("keydown", this.onKey);
    parent.append(element("div", "flame", this.controls.element, this.scroll, this.detail.element));
    this.resized.observe(this.scroll);
  }

  destroy(): void {
    document.removeEventListener("keydown", this.onKey);
    this.resized.disconnect();
    this.tooltip.destroy();
  }

  state(): Record<string, string> {
    const { direction } = this.settings;
    const node = direction === "sandwich" ? this.middle : direction === "down" ? this.forest.node[this.selected] : 0;
    return {
      ...settingsState(this.settings, this.data),
      node: node ? String(node) : "",
      row: this.selected && direction === "up" ? String(this.selected) : "",
      zoom: this.zoomed ? String(this.zoomed) : "",
    };
  }

  apply(state: Record<string, string>): void {
    const node = within(Number(state.node || 0), this.data.tree.parent.length - 1);
    this.settings = parseSettings(state, this.data);
    this.middle = node || this.hottest();
    this.growWith(state, node);
    if (this.settings.direction === "sandwich") {
      this.selected = 0;
      this.zoomed = 0;
      this.redraw();
      return;
    }
    const last = this.forest.key.length - 1;
    this.selected = within(state.row ? Number(state.row) : this.rowOf(Number(state.node || 0)), last);
    const zoomed = within(Number(state.zoom || 0), last);
    const isTiny = this.forest.value[this.selected] < LEAST_SEEN * this.forest.value[zoomed];
    this.zoomed = isTiny || !isAtOrAbove(this.forest, zoomed, this.selected) ? this.selected : zoomed;
    this.redraw();
  }

  /** The forest of an address. A node without a value in the usual settings is shown in settings in which it has one. */
  private growWith(state: Record<string, string>, node: number): void {
    const others = [{}, { metric: state.metric || "gpu_time" }, { part: state.part || "all" }];
    for (const other of node && this.settings.direction !== "up" ? [...others, { ...others[1], ...others[2] }] : []) {
      this.settings = parseSettings({ ...state, ...other }, this.data);
      this.grow();
      if (this.forest.rowOfNode[node] >= 0) return;
    }
    this.settings = parseSettings(state, this.data);
    this.grow();
  }

  /** The row of a node, or of the nearest above it that has one. */
  private rowOf(node: number): number {
    let at = node;
    while (at > 0 && !(this.forest.rowOfNode[at] >= 0)) at = this.data.tree.parent[at] ?? 0;
    return at > 0 ? this.forest.rowOfNode[at] : 0;
  }

  private set(changed: Partial<Settings>): void {
    const isOther = CHANGE_ROWS.some((name) => name in changed);
    const node = this.forest.node[this.selected];
    const wasUp = this.settings.direction === "up";
    Object.assign(this.settings, changed);
    if ("part" in changed) this.settings = parseSettings(this.state(), this.data);
    const stays = isOther && !wasUp && this.settings.direction === "down";
    if (changed.direction === "sandwich") this.middle = node || this.hottest();
    this.grow();
    if (isOther) {
      this.selected = stays ? this.rowOf(node) : 0;
      this.zoomed = 0;
    }
    this.redraw();
    this.host.changed();
  }

  /** The rows, colours and matches that the settings ask for. */
  private grow(): void {
    const { part, metric, direction, folds, colour, query } = this.settings;
    const wanted = `${part} ${metric} ${direction} ${folds} ${direction === "sandwich" ? this.middle : ""}`;
    if (wanted !== this.grownFor) {
      this.shown = ofPart(this.data, part);
      const { own } = this.shown.metrics[metric];
      if (direction === "sandwich") this.forest = sandwich(this.data, own, folds, this.middle);
      else this.forest = (direction === "up" ? bottomUp : topDown)(this.data, own, folds);
      this.grownFor = wanted;
    }
    const match = query ? search(this.data, this.forest, query) : null;
    const { theme } = this.host;
    this.controls.show(this.settings, match, legendOf(this.shown, this.forest, colour, theme));
    const style = getComputedStyle(document.documentElement);
    this.look = {
      colour: colouring(this.shown, this.forest, colour, theme),
      name: (row) => nameOfRow(this.data, this.forest, row),
      caller: (row) => (row ? nameOfRow(this.data, this.forest, this.forest.parent[row]) : ""),
      place: (row) => placeOfRow(this.data, this.forest, row),
      match: MATCH[theme],
      mark: (row) => this.phaseMark(row),
      isMatch: match?.isMatch ?? null,
      ground: style.getPropertyValue("--ground"),
      ink: style.getPropertyValue("--ink"),
      rest: style.getPropertyValue("--line"),
    };
  }

  /** Marks where the backward pass begins. */
  private phaseMark(row: number): string {
    if (this.settings.direction !== "down" || row === 0 || this.settings.colour === "phase") return "";
    const isHere = this.backward[this.forest.node[row]] === Phase.Backward;
    const above = this.forest.node[this.forest.parent[row]];
    return isHere && this.backward[above] !== Phase.Backward ? PASSES[Phase.Backward][this.host.theme] : "";
  }

  private redraw(): void {
    const width = this.scroll.clientWidth;
    if (!width) return;
    this.picture.layOut(this.forest, this.zoomed, width);
    this.spacer.style.height = `${this.picture.n_levels * ROW_HEIGHT}px`;
    const top = (this.picture.n_above + this.forest.depth[this.selected]) * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.scroll;
    if (top < scrollTop || top + 2 * ROW_HEIGHT > scrollTop + clientHeight)
      this.scroll.scrollTop = top - clientHeight / 3;
    this.draw();
    this.detail.show(this.shown, this.forest, this.selected, this.settings.metric);
  }

  private draw(): void {
    const { clientWidth, clientHeight, scrollTop } = this.scroll;
    this.canvas.style.height = `${clientHeight}px`;
    this.picture.draw(this.look, scrollTop, clientWidth, clientHeight, this.selected);
  }

  /** The node with the largest own value. */
  private hottest(): number {
    const { own } = ofPart(this.data, this.settings.part).metrics[this.settings.metric];
    return own.reduce((most, value, node) => (value > (own[most] || 0) ? node : most), 0);
  }

  private choose(row: number, zoomed: number): void {
    if (this.settings.direction === "sandwich") {
      this.middle = this.forest.node[row];
      this.grow();
      this.redraw();
      this.host.select(this.middle);
      this.host.changed();
      return;
    }
    this.selected = row;
    this.zoomed = zoomed;
    this.redraw();
    this.host.select(this.forest.node[row]);
    this.host.changed();
  }

  private onClick(event: MouseEvent): void {
    this.tooltip.hide();
    const box = this.picture.at(event.offsetX, event.offsetY + this.scroll.scrollTop);
    if (box && box.row >= 0) this.choose(box.row, box.row);
  }

  private onMove(event: MouseEvent): void {
    const box = this.picture.at(event.offsetX, event.offsetY + this.scroll.scrollTop);
    if (!box) this.tooltip.hide();
    else if (box.row < 0)
      this.tooltip.show(event.clientX, event.clientY, `${countText(box.more, "box", "boxes")} too narrow to draw`, []);
    else {
      const rows = shares(this.shown, this.forest, box.row, this.settings.metric);
      const place: [string, string] = ["", placeText(this.data, this.forest, box.row)];
      this.tooltip.show(event.clientX, event.clientY, nameOfRow(this.data, this.forest, box.row), [...rows, place]);
    }
  }

  private readonly onKey = (event: KeyboardEvent): void => act(event, this.keys());

  private keys(): Record<string, () => void> {
    const step = (key: string) => () => this.choose(neighbour(this.forest, this.selected, key), this.zoomed);
    return {
      ArrowDown: step("ArrowDown"),
      ArrowUp: step("ArrowUp"),
      ArrowLeft: step("ArrowLeft"),
      ArrowRight: step("ArrowRight"),
      Enter: () => this.choose(this.selected, this.selected),
      Escape: () => this.choose(this.selected, Math.max(this.forest.parent[this.zoomed], 0)),
      "0": () => this.choose(0, 0),
      "/": () => this.controls.field.focus(),
      b: () => this.set({ direction: this.settings.direction === "up" ? "down" : "up" }),
      s: () => this.set({ direction: this.settings.direction === "sandwich" ? "down" : "sandwich" }),
      l: () => this.set({ folds: !this.settings.folds }),
      c: () => this.set({ colour: this.settings.colour === "kind" ? "phase" : "kind" }),
    };
  }
}

/** Why there is no flame graph; empty: there is one. */
export function flameLack(data: ProfileData): string {
  return widthMetrics(data).length ? "" : "The profile has no metric that adds up: there is nothing to draw.";
}

function within(row: number, last: number): number {
  return Number.isInteger(row) && row >= 0 && row <= last ? row : 0;
}
