import "./timeline.css";
import type { ProfileData } from "../../data/profile";
import { element } from "../../ui/element";
import { countText, timeText } from "../../ui/numbers";
import { Tooltip } from "../../ui/tooltip";
import type { Host, View } from "../view";
import { Bar } from "./bar";
import { gapFacts, sliceFacts, sliceLabel } from "./facts";
import { find } from "./find";
import type { Hit } from "./geometry";
import { Gestures } from "./gestures";
import { HeldKeys, PRESS_S } from "./held_keys";
import { longestGaps } from "./idle";
import { HELD } from "./keys";
import { Minimap } from "./minimap";
import { belowNode, type Model, modelOf, placeOfSlice } from "./model";
import { firstFrom } from "./order";
import { frameColours, type Palette, paletteOf } from "./palette";
import { Panel } from "./panel";
import { perfettoDialog } from "./perfetto";
import { firstScene, type Scene } from "./scene";
import { around, centred, clamped, panned, parseSpan, type Span, spanText, usualSpan, whole, zoomed } from "./span";
import { Stage } from "./stage";
import { totalsOf } from "./totals";

/** A second of a held key zooms by e to this, and moves by so many lengths of what is shown. */
const ZOOM_A_SECOND = 2.2;
const PAN_A_SECOND = 1.1;
const SCROLL_PX_A_SECOND = 600;
/** Totals, and the address, wait until the picture rests. */
const REST_MS = 180;
const MAX_GAPS = 100;

/** What ran when: a lane for each thread and stream. */
export class TimelineView implements View {
  private readonly model: Model;
  private readonly palette: Palette;
  private readonly scene: Scene;
  private readonly tooltip = new Tooltip();
  private readonly root = element("div", "timeline");
  private readonly bar: Bar;
  private keys!: HeldKeys;
  private stage!: Stage;
  private minimap!: Minimap;
  private panel!: Panel;
  private observer!: ResizeObserver;
  private frame = 0;
  private frame_ms = 0;
  private restTimer = 0;
  private gapIndex = -1;
  /** Where the pointer is over the lanes; null: elsewhere. */
  private pointer_px: number | null = null;

  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {
    this.model = modelOf(data);
    this.palette = paletteOf(frameColours(data, host.theme), host.theme);
    this.scene = firstScene(this.model.length_ns);
    this.bar = new Bar(
      { find: (text) => this.setFound(text), nextFound: (step) => this.nextFound(step) },
      this.buttons(),
    );
  }

  mount(parent: HTMLElement): void {
    const lanes = element("div", "timeline-stage");
    this.root.append(this.bar.root);
    this.minimap = new Minimap(this.root, this.model, this.palette, (at) =>
      this.show(centred(this.scene.span, at, this.model.length_ns)),
    );
    this.root.append(lanes);
    this.stage = new Stage(lanes, this.data, this.model, this.palette);
    this.panel = new Panel(this.root, this.data, this.model, this.palette.css, {
      goTo: (slice) => this.goTo(slice),
      open: (view, state) => this.host.open(view, state),
      find: (name) => this.setFound(name),
    });
    parent.append(this.root);
    new Gestures(this.stage.canvas, {
      zoom: (factor, x) => this.show(zoomed(this.scene.span, factor, this.timeAt(x), this.model.length_ns)),
      move: (x_px, y_px) => this.moveBy(x_px, y_px),
      hover: (x, y, event) => this.hover(x, y, event),
      leave: () => this.unhover(),
      click: (x, y) => this.click(x, y),
      doubleClick: (x, y) => this.doubleClick(x, y),
      startsRange: (x, y, shift) => shift || this.hit(x, y).inRuler,
      range: (from, to) => this.choose(ordered(this.timeAt(from), this.timeAt(to))),
      isOverLabels: (x, y) => this.hit(x, y).inLabels,
    });
    this.observer = new ResizeObserver(() => this.resize(lanes));
    this.observer.observe(lanes);
    this.resize(lanes);
    this.panel.showSlice(-1);
    this.keys = new HeldKeys({
      step: (key, seconds) => this.step(key, seconds),
      act: (key, isBack, target) => this.act(key, isBack ? -1 : 1, target),
    });
  }

  destroy(): void {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.restTimer);
    this.keys.destroy();
    this.bar.destroy();
    this.tooltip.destroy();
    this.root.remove();
  }

  state(): Record<string, string> {
    const { span, range, selected, closed, found } = this.scene;
    const state: Record<string, string> = {};
    const usual = usualSpan(this.data.summary.wall?.steady, this.model.length_ns);
    if (span.start !== usual.start || span.end !== usual.end) state.span = spanText(span);
    if (range !== null) state.range = spanText(range);
    if (selected >= 0) state.slice = String(selected);
    if (found !== null) state.find = found.text;
    if (closed.size > 0) state.closed = [...closed].join(",");
    return state;
  }

  apply(state: Record<string, string>): void {
    const { scene } = this;
    scene.closed = new Set((state.closed ?? "").split(",").filter(Boolean).map(Number));
    this.relayout();
    scene.selected = this.sliceOf(state);
    scene.range = parseSpan(state.range);
    this.setFound(state.find ?? "");
    const span = parseSpan(state.span) ?? this.firstSpan();
    scene.span = clamped(span, this.model.length_ns);
    if (scene.selected < 0 && scene.range !== null) this.panel.showGap(scene.range);
    else this.panel.showSlice(scene.selected);
    if (scene.selected >= 0) this.scrollTo(scene.selected);
    this.changed();
  }

  /** As usual, or all of the run where that would hide what is chosen. */
  private firstSpan(): Span {
    const usual = usualSpan(this.data.summary.wall?.steady, this.model.length_ns);
    const { range, selected } = this.scene;
    const { start, duration } = this.data.slices;
    const slice = selected < 0 ? usual : { start: start[selected], end: start[selected] + duration[selected] };
    const chosen = range ?? slice;
    return chosen.start >= usual.start && chosen.end <= usual.end ? usual : whole(this.model.length_ns);
  }

  private buttons(): [string, string, () => void][] {
    const nextGap: [string, string, () => void] = ["Next gap", "The longest gaps of GPUs (G)", () => this.nextGap(1)];
    return [
      ["+", "Zoom in (W)", () => this.zoom(-PRESS_S * 3)],
      ["−", "Zoom out (S)", () => this.zoom(PRESS_S * 3)],
      ["All", "Everything (0)", () => this.show(whole(this.model.length_ns))],
      ...(this.model.busy.length > 0 ? [nextGap] : []),
      ["Perfetto", "Open in Perfetto", () => this.openPerfetto()],
    ];
  }

  private resize(lanes: HTMLElement): void {
    if (lanes.clientWidth === 0) return;
    this.stage.resize(lanes.clientWidth, lanes.clientHeight, this.scene.closed);
    this.minimap.resize(this.root.clientWidth);
    this.draw();
  }

  private relayout(): void {
    const { geometry } = this.stage;
    geometry.resize(geometry.width_px, geometry.height_px, this.scene.closed);
  }

  /** At most once a frame. */
  private changed(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame((now) => this.tick(now));
    clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => this.rest(), REST_MS);
  }

  private tick(now_ms: number): void {
    this.frame = 0;
    const elapsed_s = this.frame_ms ? Math.min((now_ms - this.frame_ms) / 1e3, 0.1) : 0;
    this.frame_ms = this.keys.held.size > 0 ? now_ms : 0;
    for (const key of this.keys.held) this.step(key, elapsed_s);
    this.draw();
    if (this.keys.held.size > 0) this.changed();
  }

  private draw(): void {
    const { scene } = this;
    scene.scroll_px = Math.min(Math.max(scene.scroll_px, 0), this.stage.geometry.overflow_px);
    this.stage.draw(scene);
    this.minimap.draw(scene.span);
  }

  private rest(): void {
    const span = this.withinRun(this.scene.span);
    const totals = totalsOf(this.data, this.model.groups, this.model.busy, span);
    this.panel.showTotals(totals, span.end - span.start, this.scene.range !== null);
    this.host.changed();
  }

  /** Before the run and after the last slice nothing was recorded, so nothing was idle. */
  private withinRun(span: Span): Span {
    return (
      this.scene.range ?? { start: Math.max(span.start, 0), end: Math.min(span.end, Math.max(this.model.length_ns, 1)) }
    );
  }

  private show(span: Span): void {
    this.scene.span = span;
    this.changed();
  }

  private zoom(seconds: number): void {
    const { span } = this.scene;
    const around_ns = this.pointer_px === null ? (span.start + span.end) / 2 : this.timeAt(this.pointer_px);
    this.show(zoomed(span, Math.exp(ZOOM_A_SECOND * seconds), around_ns, this.model.length_ns));
  }

  private moveBy(x_px: number, y_px: number): void {
    this.scene.scroll_px -= y_px;
    this.show(panned(this.scene.span, -x_px / this.stage.geometry.plot_px, this.model.length_ns));
  }

  private choose(range: Span | null): void {
    this.scene.range = range;
    this.changed();
  }

  private select(slice: number): void {
    this.scene.selected = slice;
    this.panel.showSlice(slice);
    this.changed();
    // First the address: the page asks for what it says whenever it is drawn anew.
    this.host.changed();
    if (slice >= 0) this.host.select(this.data.slices.node[slice]);
  }

  /** Choose a slice and bring it into view. */
  private goTo(slice: number): void {
    const start = this.data.slices.start[slice];
    const end = start + this.data.slices.duration[slice];
    const { span } = this.scene;
    if (start < span.start || end > span.end || end - start < (span.end - span.start) / this.stage.geometry.plot_px) {
      this.scene.span = around({ start, end }, this.model.length_ns, 8);
    }
    if (Number.isNaN(this.stage.geometry.yOf(slice, 0))) {
      this.scene.closed.clear();
      this.relayout();
    }
    this.scrollTo(slice);
    this.select(slice);
  }

  private scrollTo(slice: number): void {
    const y = this.stage.geometry.yOf(slice, this.scene.scroll_px);
    const height = this.stage.canvas.clientHeight;
    if (y < 40 || y > height - 40) this.scene.scroll_px += y - height / 2;
  }

  private hit(x: number, y: number): Hit {
    return this.stage.geometry.hit(x, y, this.scene);
  }

  private timeAt(x: number): number {
    return this.stage.geometry.timeAt(x, this.scene.span);
  }

  private hover(x: number, y: number, event: PointerEvent): void {
    this.pointer_px = x;
    const hit = this.hit(x, y);
    if (hit.slice !== this.scene.hovered) {
      this.scene.hovered = hit.slice;
      this.stage.drawOverlay(this.scene);
    }
    if (hit.slice >= 0) {
      const title = sliceLabel(this.data, hit.slice);
      this.tooltip.show(event.clientX, event.clientY, title, sliceFacts(this.data, hit.slice));
    } else if (hit.gap !== null) {
      const title = `GPU idle for ${timeText(hit.gap.end - hit.gap.start)}`;
      this.tooltip.show(event.clientX, event.clientY, title, gapFacts(this.data, this.model, hit.gap));
    } else this.tooltip.hide();
  }

  private unhover(): void {
    this.pointer_px = null;
    this.tooltip.hide();
    if (this.scene.hovered < 0) return;
    this.scene.hovered = -1;
    this.stage.drawOverlay(this.scene);
  }

  private click(x: number, y: number): void {
    const hit = this.hit(x, y);
    if (hit.band !== null && hit.band.lane === null) this.toggle(hit.band.group);
    else if (!hit.inRuler && !hit.inLabels) {
      if (hit.slice < 0) this.scene.range = null;
      if (hit.slice < 0 && hit.gap !== null) this.chooseGap(hit.gap);
      else this.select(hit.slice);
    }
  }

  private doubleClick(x: number, y: number): void {
    const hit = this.hit(x, y);
    if (hit.slice >= 0) this.fit();
    else if (hit.gap !== null) this.show(around(hit.gap, this.model.length_ns));
  }

  private toggle(group: number): void {
    const { closed } = this.scene;
    if (!closed.delete(group)) closed.add(group);
    this.relayout();
    this.changed();
  }

  private fit(): void {
    const { selected, range } = this.scene;
    const { start, duration } = this.data.slices;
    if (range !== null) this.show(around(range, this.model.length_ns, 0.02));
    else if (selected >= 0) {
      this.show(around({ start: start[selected], end: start[selected] + duration[selected] }, this.model.length_ns));
    }
  }

  private setFound(text: string): void {
    const found = find(this.data, this.model.groups, text);
    this.scene.found = found;
    this.bar.show(text, found === null ? "" : `${countText(found.slices.length, "slice")}, ${timeText(found.time_ns)}`);
    this.changed();
  }

  private nextFound(step: 1 | -1): void {
    const slices = this.scene.found?.slices;
    if (!slices?.length) return;
    const { start } = this.data.slices;
    const { selected, span } = this.scene;
    const at = slices.indexOf(selected);
    if (at >= 0) this.goTo(slices[(at + step + slices.length) % slices.length]);
    else {
      const starts = Float64Array.from(slices, (slice) => start[slice]);
      this.goTo(slices[firstFrom(starts, span.start) % slices.length]);
    }
  }

  private nextGap(step: 1 | -1): void {
    const gaps = this.model.busy
      .flatMap((busy) => longestGaps(busy, MAX_GAPS))
      .sort((a, b) => b.end - b.start - (a.end - a.start))
      .slice(0, MAX_GAPS);
    if (gaps.length === 0) return;
    this.gapIndex =
      this.gapIndex < 0 && step < 0 ? gaps.length - 1 : (this.gapIndex + step + gaps.length) % gaps.length;
    this.chooseGap(gaps[this.gapIndex]);
    this.show(around(gaps[this.gapIndex], this.model.length_ns, 1));
  }

  /** A gap is a range, and the panel says what it waited for. */
  private chooseGap(gap: Span): void {
    this.scene.selected = -1;
    this.panel.showGap(gap);
    this.choose(gap);
  }

  private neighbour(step: 1 | -1): void {
    const place = this.scene.selected < 0 ? null : placeOfSlice(this.data, this.model, this.scene.selected);
    const slice = place?.row.slices[place.index + step];
    if (slice !== undefined) this.goTo(slice);
  }

  private followArrow(): void {
    const { selected } = this.scene;
    const [flow] = selected < 0 ? [] : this.model.flows.of(selected);
    if (flow !== undefined) this.goTo(flow[0] === selected ? flow[1] : flow[0]);
  }

  /** The slice that an address names, else the first at or below its node, which another view chose; -1: none. */
  private sliceOf(state: Record<string, string>): number {
    const { node } = this.data.slices;
    const slice = Number.parseInt(state.slice ?? "-1", 10);
    const chosen = slice >= 0 && slice < node.length ? slice : -1;
    const wanted = Number.parseInt(state.node ?? "-1", 10);
    if (!(wanted > 0) || (chosen >= 0 && node[chosen] === wanted)) return chosen;
    const below = belowNode(this.data, wanted);
    return node.findIndex((one) => below[one] === 1);
  }

  private openPerfetto(): void {
    const dialog = perfettoDialog(this.data, this.model);
    this.root.append(dialog);
    dialog.showModal();
  }

  private step(key: string, seconds: number): void {
    const { zoom, pan, scroll } = HELD[key];
    if (zoom) this.zoom(zoom * seconds);
    if (pan) this.show(panned(this.scene.span, pan * PAN_A_SECOND * seconds, this.model.length_ns));
    this.scene.scroll_px += scroll * SCROLL_PX_A_SECOND * seconds;
    this.changed();
  }

  /** What a key does once; whether it does anything. */
  private act(key: string, step: 1 | -1, target: EventTarget | null): boolean {
    const actions: Record<string, () => void> = {
      "0": () => this.show(whole(this.model.length_ns)),
      f: () => this.fit(),
      "[": () => this.neighbour(-1),
      "]": () => this.neighbour(1),
      g: () => this.nextGap(step),
      n: () => this.nextFound(step),
      "/": () => this.bar.focus(),
      Escape: () => {
        this.choose(null);
        this.select(-1);
      },
    };
    if (key === "Enter" && target === this.stage.canvas) actions.Enter = () => this.followArrow();
    actions[key]?.();
    return key in actions;
  }
}

function ordered(one: number, other: number): Span | null {
  return one === other ? null : { start: Math.min(one, other), end: Math.max(one, other) };
}
