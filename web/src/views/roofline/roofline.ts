import "./roofline.css";
import { FrameKind, type ProfileData } from "../../data/profile";
import type { RooflineData, RooflinePoint } from "../../data/roofline";
import { element } from "../../ui/element";
import { isForView } from "../../ui/keys";
import { bytesText, rateText, shareText, timeText } from "../../ui/numbers";
import { cut, printable } from "../../ui/text";
import { Tooltip } from "../../ui/tooltip";
import type { Host, View } from "../view";
import { absentLines } from "./absent";
import { type Axis, axesOf, type Box, decadeText, drawn, neighbour, type RoofLine, radius, roofLines } from "./scale";

const SVG = "http://www.w3.org/2000/svg";
const LEFT_PX = 60;
const RIGHT_PX = 24;
const TOP_PX = 16;
const BOTTOM_PX = 46;
const LEAST_HEIGHT_PX = 240;
const LETTER_PX = 6.4;
const NAMED = 12;
/** Dashes tell roofs of several devices apart, besides their names. */
const DASHES = ["", "8 4", "2 4", "12 4 2 4"];
const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** What kernels reach of what their device lets them reach. */
export class RooflineView implements View {
  private readonly chart: RooflineData;
  private readonly points: RooflinePoint[];
  private readonly root = element("div", "roofline");
  private readonly plot = element("div", "roofline-plot");
  private readonly list = element("div", "roofline-list");
  private readonly tooltip = new Tooltip();
  private observer!: ResizeObserver;
  private circles: SVGElement[] = [];
  private rows: HTMLElement[] = [];
  private places: [number, number][] = [];
  private chosen = -1;

  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {
    // The table of views says what is lacking where there is none.
    this.chart = data.roofline as RooflineData;
    this.points = drawn(this.chart);
  }

  mount(parent: HTMLElement): void {
    this.root.append(this.plot, this.list);
    parent.append(this.root);
    this.fillList();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.plot);
    document.addEventListener("keydown", this.onKey);
    this.draw();
  }

  destroy(): void {
    this.observer.disconnect();
    document.removeEventListener("keydown", this.onKey);
    this.tooltip.destroy();
    this.root.remove();
  }

  state(): Record<string, string> {
    return this.chosen < 0 ? {} : { kernel: this.points[this.chosen].name };
  }

  apply(state: Record<string, string>): void {
    const { tree, frames } = this.data;
    const node = Number.parseInt(state.node ?? "0", 10);
    const name = node > 0 && node < tree.frame.length ? frames.name[tree.frame[node]] : undefined;
    const found = this.points.findIndex((point) => point.name === name);
    this.chosen = found >= 0 ? found : this.points.findIndex((point) => point.name === state.kernel);
    this.mark();
    this.rows[this.chosen]?.scrollIntoView({ block: "nearest" });
  }

  private draw(): void {
    const width = this.plot.clientWidth;
    const height = Math.max(this.plot.clientHeight, LEAST_HEIGHT_PX);
    if (width === 0) return;
    const box: Box = { left: LEFT_PX, right: width - RIGHT_PX, top: TOP_PX, bottom: height - BOTTOM_PX };
    const { x, y } = axesOf(this.chart, box);
    const picture = svg("svg", { width, height, role: "img", "aria-label": "Roofline" });
    picture.append(...grid(x, y, box));
    for (const line of roofLines(this.chart, x, y)) picture.append(...this.roof(line, x, y));
    this.places = this.points.map((point) => [
      x.pixel(point.intensity as number),
      y.pixel(point.flops_per_s as number),
    ]);
    this.circles = this.points.map((point, index) => this.circle(point, index));
    // The largest below, so that none is hidden.
    const order = [...this.circles.keys()].sort((a, b) => this.points[b].time_ns - this.points[a].time_ns);
    picture.append(...order.map((index) => this.circles[index]), ...this.numbers());
    this.plot.replaceChildren(picture);
    this.mark();
  }

  private circle(point: RooflinePoint, index: number): SVGElement {
    const [cx, cy] = this.places[index];
    const made = svg("circle", { cx, cy, r: radius(point, this.chart), class: `point ${point.bound ?? "memory"}` });
    made.dataset.point = String(index);
    made.addEventListener("mousemove", (event) => this.hover(index, event.clientX, event.clientY));
    made.addEventListener("mouseleave", () => this.leave());
    made.addEventListener("click", () => this.choose(index));
    return made;
  }

  /** Numbers of the points with most time, which lead to their names beside the chart. */
  private numbers(): SVGElement[] {
    return this.points.slice(0, NAMED).map((point, index) => {
      const [x, y] = this.places[index];
      const size = radius(point, this.chart);
      const beside = size > 10 ? 0 : size + 7;
      return text(String(index + 1), x + beside, y + 4, "number halo", "middle");
    });
  }

  private roof(line: RoofLine, x: Axis, y: Axis): SVGElement[] {
    const roof = this.chart.roofs[line.roof];
    const [x1, y1, x2, y2] = [x.pixel(line.from[0]), y.pixel(line.from[1]), x.pixel(line.to[0]), y.pixel(line.to[1])];
    const stroke = svg("line", {
      x1,
      y1,
      x2,
      y2,
      class: line.isCounted ? "roof" : "roof other",
      "stroke-dasharray": DASHES[line.roof % DASHES.length],
    });
    stroke.dataset.roof = String(line.roof);
    const device = this.chart.roofs.length > 1 ? `${cut(roof.device, 40)}: ` : "";
    const isSlope = line.widths.length === 0;
    const label = isSlope
      ? `${device}memory, ${rateText(roof.bytes_per_s, "B/s")}`
      : `${device}${line.widths.join(" and ")} bit, ${rateText(line.from[1], "flop/s")}`;
    const source = svg("title", {});
    source.textContent = printable(`${roof.device}\n${roof.source}`);
    stroke.append(source);
    if (isSlope) return [stroke, slopeLabel(label, x1, y1, x2, y2)];
    if (!line.isCounted) return [stroke, text(label, x2 - 4, y1 - 4, "faint halo small", "end")];
    return [stroke, levelLabel(label, x1, y1, x2, x.start)];
  }

  private fillList(): void {
    const list = element("ol");
    this.rows = this.points.map((point, index) => this.row(point, index));
    list.append(...this.rows);
    const legend = element(
      "p",
      "note",
      mark("memory"),
      "memory bound ",
      mark("compute"),
      "compute bound. Area: GPU time; percent: of the roof.",
    );
    this.list.append(element("h2", "", "Kernels"), legend, list, ...this.absent(), ...this.sources());
  }

  private row(point: RooflinePoint, index: number): HTMLElement {
    const name = element("span", "name", printable(point.name.slice(0, 300)));
    const util = element("span", "number", shareText(point.util));
    const button = element("button", "", mark(point.bound ?? "memory"), name, util);
    button.type = "button";
    button.addEventListener("click", () => this.choose(index));
    button.addEventListener("mousemove", (event) => this.hover(index, event.clientX, event.clientY));
    button.addEventListener("mouseleave", () => this.leave());
    return element("li", "", button);
  }

  /** What has no place in the chart, and why. */
  private absent(): HTMLElement[] {
    const lines = absentLines(this.chart);
    if (lines.length === 0) return [];
    const list = element("ul", "note");
    for (const line of lines) list.append(element("li", "", printable(line)));
    return [element("h2", "", "Not drawn"), list];
  }

  private sources(): HTMLElement[] {
    const list = element("ul", "note");
    for (const roof of this.chart.roofs) {
      list.append(element("li", "", printable([roof.device, roof.source, roof.missing].filter(Boolean).join(": "))));
    }
    return [element("h2", "", "Roofs"), list];
  }

  private hover(index: number, x: number, y: number): void {
    const point = this.points[index];
    const share = this.chart.time_ns > 0 ? point.time_ns / this.chart.time_ns : Number.NaN;
    this.tooltip.show(x, y, point.name, [
      ["reached", `${rateText(point.flops_per_s, "flop/s")}, ${rateText(point.bytes_per_s, "B/s")}`],
      ["intensity", `${(point.intensity as number).toPrecision(3)} flop/B`],
      ["of its roof", point.util === null ? "–" : `${shareText(point.util)} of the ${point.bound} roof`],
      ["GPU time", `${timeText(point.time_ns)}, ${shareText(share)}`],
      ["work", `${rateText(point.flops, "flop")}, ${bytesText(point.bytes)}`],
      ...(point.roof === null ? [] : [["device", this.chart.roofs[point.roof].device] as [string, string]]),
    ]);
    this.mark(index);
  }

  private leave(): void {
    this.tooltip.hide();
    this.mark();
  }

  private choose(index: number): void {
    this.chosen = index === this.chosen ? -1 : index;
    this.mark();
    if (this.chosen >= 0) {
      this.rows[this.chosen].scrollIntoView({ block: "nearest" });
      const node = this.hottestNode(this.points[this.chosen].name);
      if (node > 0) this.host.select(node);
    }
    this.host.changed();
  }

  /** Of the nodes of a name the one with most GPU time; kernels before scopes. */
  private hottestNode(name: string): number {
    const { tree, frames, metrics } = this.data;
    const time = metrics.gpu_time?.own;
    let best = -1;
    let most = -1;
    for (let node = 1; node < tree.frame.length; node += 1) {
      const frame = tree.frame[node];
      if (frames.name[frame] !== name) continue;
      const heat = (frames.kind[frame] === FrameKind.Kernel ? 1 : 0) + (time?.[node] || 0);
      if (heat > most) [best, most] = [node, heat];
    }
    return best;
  }

  private mark(hovered = -1): void {
    for (const [index, circle] of this.circles.entries()) {
      circle.classList.toggle("chosen", index === this.chosen);
      circle.classList.toggle("hovered", index === hovered);
    }
    for (const [index, row] of this.rows.entries()) {
      row.classList.toggle("chosen", index === this.chosen);
      row.classList.toggle("hovered", index === hovered);
    }
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    if (!isForView(event) || this.points.length === 0) return;
    const count = this.points.length;
    if (event.key in ARROWS) {
      const next = this.chosen < 0 ? 0 : neighbour(this.places, this.chosen, ...ARROWS[event.key]);
      if (next >= 0) this.choose(next);
    } else if (event.key === "j") this.choose((this.chosen + 1) % count);
    else if (event.key === "k") this.choose((Math.max(this.chosen, 0) + count - 1) % count);
    else if (event.key === "Escape" && this.chosen >= 0) this.choose(this.chosen);
    else return;
    event.preventDefault();
  };
}

function svg(tag: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(name, String(value));
  return made;
}

function text(content: string, x: number, y: number, className: string, anchor: string, transform = ""): SVGElement {
  const made = svg("text", { x, y, class: className, "text-anchor": anchor, transform });
  made.textContent = content;
  return made;
}

function mark(bound: string): HTMLElement {
  return element("i", `mark ${bound}`);
}

function grid(x: Axis, y: Axis, box: Box): SVGElement[] {
  const vertical = x.decades.flatMap((value) => [
    svg("line", { x1: x.pixel(value), x2: x.pixel(value), y1: box.top, y2: box.bottom, class: "grid" }),
    text(decadeText(value), x.pixel(value), box.bottom + 17, "faint", "middle"),
  ]);
  const horizontal = y.decades.flatMap((value) => [
    svg("line", { x1: box.left, x2: box.right, y1: y.pixel(value), y2: y.pixel(value), class: "grid" }),
    text(decadeText(value), box.left - 6, y.pixel(value) + 4, "faint", "end"),
  ]);
  const middle = (box.top + box.bottom) / 2;
  return [
    ...vertical,
    ...horizontal,
    text("arithmetic intensity, flop/byte", (box.left + box.right) / 2, box.bottom + 36, "ink", "middle"),
    text("flop/s", 14, middle, "ink", "middle", `rotate(-90 14 ${middle})`),
  ];
}

/** Left of the corner of a roof, where no point can be; above its end where there is no room. */
function levelLabel(label: string, corner: number, level: number, end: number, left: number): SVGElement {
  if (corner - 8 - label.length * LETTER_PX > left) return text(label, corner - 8, level + 4, "ink halo", "end");
  return text(label, end - 4, level - 6, "ink halo", "end");
}

function slopeLabel(label: string, x1: number, y1: number, x2: number, y2: number): SVGElement {
  const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
  const turn = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  return text(label, x, y - 7, "ink halo", "middle", `rotate(${turn.toFixed(1)} ${x.toFixed(1)} ${y.toFixed(1)})`);
}
