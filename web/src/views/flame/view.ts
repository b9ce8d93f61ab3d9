import "./flame.css";
import type { FrameKind, ProfileData } from "../../data/profile";
import { heatColour, KIND_NAMES, kindColour } from "../../ui/colours";
import { element } from "../../ui/element";
import { countText, shareText, valueText } from "../../ui/numbers";
import { Choice, searchField, select, tick } from "../../ui/toolbar";
import { Tooltip } from "../../ui/tooltip";
import type { Host, View } from "../view";
import { colouring, kindOfRow, type Legend, largest, nameOfRow, ofRows, PHASE_LEGEND } from "./colouring";
import { Detail, placeText, shares } from "./detail";
import { bottomUp, type Direction, type Forest, topDown } from "./forest";
import { neighbour } from "./layout";
import { Phase, phases } from "./phase";
import { type Look, Picture, ROW_HEIGHT } from "./picture";
import { type Match, search } from "./search";

/** Selecting a row with less than this share of the whole zooms to it: it would hardly be seen. */
const LEAST_SEEN = 0.02;

interface Settings {
  metric: string;
  direction: Direction;
  folds: boolean;
  colour: string;
  query: string;
}

/** The call tree as an icicle: width is what a metric says. */
export class FlameView implements View {
  private readonly usual: Settings;
  private settings: Settings;
  private forest!: Forest;
  private look!: Look;
  private match: Match | null = null;
  private selected = 0;
  private zoomed = 0;
  private readonly backward: Uint8Array;

  private readonly canvas = element("canvas");
  private readonly picture = new Picture(this.canvas);
  private readonly scroll = element("div", "scroll");
  private readonly spacer = element("div", "spacer");
  private readonly detail: Detail;
  private readonly tooltip = new Tooltip();
  private readonly legend = element("span", "legend");
  private readonly note = element("span", "note");
  private readonly resized = new ResizeObserver(() => this.redraw());
  private controls!: { sync(): void; field: HTMLInputElement };

  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {
    this.usual = {
      metric: data.mainMetric ?? widthMetrics(data)[0],
      direction: "down",
      folds: data.libraries.some((name) => name !== ""),
      colour: "kind",
      query: "",
    };
    this.settings = { ...this.usual };
    this.backward = phases(data);
    this.detail = new Detail(data, (row) => this.choose(row, row));
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
    parent.append(element("div", "flame", this.toolbar(), this.scroll, this.detail.element));
    this.resized.observe(this.scroll);
  }

  destroy(): void {
    document.removeEventListener("keydown", this.onKey);
    this.resized.disconnect();
    this.tooltip.destroy();
  }

  state(): Record<string, string> {
    const { metric, direction, folds, colour, query } = this.settings;
    const isDown = direction === "down";
    const different = (value: string, usual: string) => (value === usual ? "" : value);
    return {
      metric: different(metric, this.usual.metric),
      direction: different(direction, "down"),
      libraries: different(String(folds), String(this.usual.folds)),
      colour: different(colour, "kind"),
      q: query,
      node: this.selected && isDown ? String(this.forest.node[this.selected]) : "",
      row: this.selected && !isDown ? String(this.selected) : "",
      zoom: this.zoomed ? String(this.zoomed) : "",
    };
  }

  apply(state: Record<string, string>): void {
    const has = (name: string | undefined, names: string[]) => name !== undefined && names.includes(name);
    this.settings = {
      metric: has(state.metric, widthMetrics(this.data)) ? state.metric : this.usual.metric,
      direction: state.direction === "up" ? "up" : "down",
      folds: state.libraries ? state.libraries === "true" : this.usual.folds,
      colour: has(state.colour, ["phase", ...Object.keys(this.data.metrics)]) ? state.colour : "kind",
      query: state.q ?? "",
    };
    this.grow();
    const last = this.forest.key.length - 1;
    const row = this.settings.direction === "up" ? Number(state.row) : this.rowOf(Number(state.node || 0));
    this.selected = within(row, last);
    const isTiny = this.forest.value[this.selected] < LEAST_SEEN * this.forest.value[0];
    this.zoomed = state.zoom ? within(Number(state.zoom), last) : isTiny ? this.selected : 0;
    this.controls.sync();
    this.redraw();
  }

  /** The row of a node, or of the nearest above it that has one. */
  private rowOf(node: number): number {
    let at = node;
    while (at > 0 && !(this.forest.rowOfNode[at] >= 0)) at = this.data.tree.parent[at] ?? 0;
    return at > 0 ? this.forest.rowOfNode[at] : 0;
  }

  private set(changed: Partial<Settings>): void {
    const isOther = "metric" in changed || "direction" in changed || "folds" in changed;
    const node = this.forest.node[this.selected];
    const stays = isOther && this.settings.direction === "down" && changed.direction !== "up";
    Object.assign(this.settings, changed);
    this.grow();
    if (isOther) {
      this.selected = stays ? this.rowOf(node) : 0;
      this.zoomed = 0;
    }
    this.controls.sync();
    this.redraw();
    this.host.changed();
  }

  /** The rows, colours and matches that the settings ask for. */
  private grow(): void {
    const { metric, direction, folds, colour, query } = this.settings;
    const grown = direction === "up" ? bottomUp : topDown;
    this.forest = grown(this.data, this.data.metrics[metric].own, folds);
    this.match = query ? search(this.data, this.forest, query) : null;
    const style = getComputedStyle(document.documentElement);
    this.look = {
      colour: colouring(this.data, this.forest, colour, this.host.theme),
      name: (row) => nameOfRow(this.data, this.forest, row),
      mark: (row) => this.phaseMark(row),
      isMatch: this.match?.isMatch ?? null,
      ground: style.getPropertyValue("--ground"),
      ink: style.getPropertyValue("--ink"),
      rest: style.getPropertyValue("--line"),
    };
  }

  /** Marks where the backward pass begins. */
  private phaseMark(row: number): string {
    if (this.settings.direction === "up" || row === 0 || this.settings.colour === "phase") return "";
    const isHere = this.backward[this.forest.node[row]] === Phase.Backward;
    const above = this.forest.node[this.forest.parent[row]];
    return isHere && this.backward[above] !== Phase.Backward ? PHASE_LEGEND[1][0] : "";
  }

  private redraw(): void {
    const width = this.scroll.clientWidth;
    if (!width) return;
    this.picture.layOut(this.forest, this.zoomed, width);
    this.spacer.style.height = `${this.picture.n_levels * ROW_HEIGHT}px`;
    const top = this.forest.depth[this.selected] * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.scroll;
    if (top < scrollTop || top + 2 * ROW_HEIGHT > scrollTop + clientHeight)
      this.scroll.scrollTop = top - clientHeight / 3;
    this.draw();
    this.detail.show(this.forest, this.selected, this.settings.metric);
  }

  private draw(): void {
    const { clientWidth, clientHeight, scrollTop } = this.scroll;
    this.canvas.style.height = `${clientHeight}px`;
    this.picture.draw(this.look, scrollTop, clientWidth, clientHeight, this.selected);
  }

  private choose(row: number, zoomed: number): void {
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
      const rows = shares(this.data, this.forest, box.row, this.settings.metric);
      const place: [string, string] = ["", placeText(this.data, this.forest, box.row)];
      this.tooltip.show(event.clientX, event.clientY, nameOfRow(this.data, this.forest, box.row), [...rows, place]);
    }
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    const isTyping = event.target instanceof Element && event.target.closest("input, select, dialog");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const does = this.keys()[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  };

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
      l: () => this.set({ folds: !this.settings.folds }),
      c: () => this.set({ colour: this.settings.colour === "kind" ? "phase" : "kind" }),
    };
  }

  private toolbar(): HTMLElement {
    const metrics = widthMetrics(this.data);
    const directions: [string, string][] = [
      ["down", "Top down"],
      ["up", "Bottom up"],
    ];
    const direction = new Choice("Direction", directions, (value) => this.set({ direction: value as Direction }));
    const sides = (
      [
        ["gpu_time", "GPU"],
        ["host_time", "CPU"],
      ] as [string, string][]
    ).filter(([name]) => metrics.includes(name));
    const side = new Choice("Side", sides, (metric) => this.set({ metric }));
    const [metricLabel, metric] = select("width", metrics.map(twice), (value) => this.set({ metric: value }));
    const colours: [string, string][] = [
      ["kind", "kind"],
      ["phase", "forward, backward"],
      ...Object.keys(this.data.metrics).map(twice),
    ];
    const [colourLabel, colour] = select("colour", colours, (value) => this.set({ colour: value }));
    const [foldLabel, fold] = tick("fold libraries", (folds) => this.set({ folds }));
    const field = searchField("Search: text or /expression/", (query) => this.set({ query }));
    this.controls = {
      field,
      sync: () => {
        direction.value = this.settings.direction;
        side.value = this.settings.metric;
        metric.value = this.settings.metric;
        colour.value = this.settings.colour;
        fold.checked = this.settings.folds;
        if (field.value !== this.settings.query) field.value = this.settings.query;
        this.note.textContent = this.match
          ? `${shareText(this.match.share)} in ${countText(this.match.count, "match", "matches")}`
          : "";
        this.showLegend();
      },
    };
    const shown = [direction.element, ...(sides.length > 1 ? [side.element] : []), metricLabel, colourLabel, foldLabel];
    return element("div", "tools", ...shown, field, this.note, this.legend);
  }

  private showLegend(): void {
    this.legend.replaceChildren(
      ...this.legendRows().map(([colour, text]) => {
        const box = element("i");
        box.style.background = colour;
        return element("span", "", box, text);
      }),
    );
  }

  private legendRows(): Legend {
    const { colour } = this.settings;
    if (colour === "phase") return PHASE_LEGEND;
    if (colour !== "kind") {
      const metric = this.data.metrics[colour];
      const most = largest(ofRows(this.data, this.forest, metric));
      const { theme } = this.host;
      return [
        [heatColour(0, theme), "none"],
        [heatColour(1, theme), `${colour} of its own, up to ${valueText(most, metric.unit)}`],
      ];
    }
    const kinds = new Set<FrameKind>();
    for (let row = 1; row < this.forest.key.length; row++) kinds.add(kindOfRow(this.data, this.forest, row));
    return [...kinds].sort((one, other) => one - other).map((kind) => [kindColour(kind), KIND_NAMES[kind]]);
  }
}

/** Why there is no flame graph; empty: there is one. */
export function flameLack(data: ProfileData): string {
  return widthMetrics(data).length ? "" : "The profile has no metric that adds up: there is nothing to draw.";
}

/** Metrics that add up along call paths and are not zero everywhere. */
function widthMetrics(data: ProfileData): string[] {
  return Object.entries(data.metrics)
    .filter(([, metric]) => metric.kind !== "property" && metric.own.some((value) => value > 0))
    .map(([name]) => name);
}

function within(row: number, last: number): number {
  return Number.isInteger(row) && row >= 0 && row <= last ? row : 0;
}

function twice(text: string): [string, string] {
  return [text, text];
}
