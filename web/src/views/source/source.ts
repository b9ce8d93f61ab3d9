import "./source.css";
import type { CodePane, KernelText, Stage } from "../../data/code";
import { FrameKind, type ProfileData } from "../../data/profile";
import { button, element } from "../../ui/element";
import { isForView } from "../../ui/keys";
import { countText, shareText, timeText } from "../../ui/numbers";
import { cutMiddle, printable } from "../../ui/text";
import { tick } from "../../ui/toolbar";
import { Tooltip } from "../../ui/tooltip";
import type { Host, View } from "../view";
import { CodeLinks, type Line } from "./links";
import { Pane, STAGE_NAMES } from "./pane";
import { hasLocations, mainRow, type Note, notesOf } from "./rows";

const STAGES: Stage[] = ["python", "ttir", "ttgir", "llir", "ptx", "sass"];
/** Which texts are shown first where there is not room for all. */
const PREFERRED: Stage[] = ["python", "sass", "ttgir", "ptx", "ttir", "llir"];
const PANE_PX = 380;
const NARROW_PX = 640;
/** The pointer rests on a line for so long before others scroll to what belongs to it. */
const DWELL_MS = 160;
const MAX_REASONS = 8;

/** The texts of a kernel beside each other: each line shows what it became in the others. */
export class SourceView implements View {
  private readonly root = element("div", "source");
  private readonly panesElement = element("div", "code-panes");
  private readonly choice = element("select");
  private readonly status = element("p", "code-status");
  private readonly group = element("span", "group");
  private readonly buttons = new Map<Stage, HTMLButtonElement>();
  private readonly tooltip = new Tooltip();
  private kernel: KernelText;
  private links: CodeLinks;
  private stages: Stage[] | null = null;
  private panes: Pane[] = [];
  private pinned: Line | null = null;
  private hovered: Line | null = null;
  private dwell = 0;
  private showsLocations = false;
  private readonly locations = tick("locations", (isOn) => this.showLocations(isOn));

  constructor(
    private readonly data: ProfileData,
    private readonly host: Host,
  ) {
    this.kernel = data.code[0];
    this.links = new CodeLinks(this.kernel);
  }

  mount(parent: HTMLElement): void {
    this.root.append(this.bar(), this.panesElement, this.status);
    this.status.setAttribute("aria-live", "polite");
    parent.append(this.root);
    document.addEventListener("keydown", this.onKey);
  }

  destroy(): void {
    clearTimeout(this.dwell);
    document.removeEventListener("keydown", this.onKey);
    for (const pane of this.panes) pane.destroy();
    this.tooltip.destroy();
    this.root.remove();
  }

  state(): Record<string, string> {
    const state: Record<string, string> = {};
    if (this.kernel !== this.data.code[0]) state.kernel = this.kernel.name;
    if (this.stages !== null) state.panes = this.stages.join(",");
    if (this.showsLocations) state.locations = "1";
    if (this.pinned !== null) state.line = `${this.pinned.stage}:${this.pinned.row}`;
    return state;
  }

  apply(state: Record<string, string>): void {
    this.kernel = this.kernelOf(state);
    this.links = new CodeLinks(this.kernel);
    this.choice.value = String(this.data.code.indexOf(this.kernel));
    const wanted = STAGES.filter((stage) => (state.panes ?? "").split(",").includes(stage));
    this.stages = wanted.length > 0 ? wanted : null;
    this.showsLocations = state.locations === "1";
    this.build();
    const [stage, row] = (state.line ?? this.lineOf(state.node)).split(":");
    const pane = this.panes.find((one) => one.stage === stage);
    const line = pane && Number(row) >= 0 && Number(row) < pane.length ? { stage: pane.stage, row: Number(row) } : null;
    if (line !== null) pane?.scrollTo(line.row);
    else this.showHottest();
    this.pin(line);
  }

  private bar(): HTMLElement {
    for (const [index, kernel] of this.data.code.entries()) {
      const samples = kernel.samples > 0 ? `  (${countText(Math.round(kernel.samples), "sample")})` : "";
      const option = element(
        "option",
        "",
        `${cutMiddle(kernel.times ? kernel.panes[0].sections[0][1] : kernel.name, 90)}${samples}`,
      );
      option.value = String(index);
      this.choice.append(option);
    }
    this.choice.setAttribute("aria-label", "Kernel or file");
    this.choice.addEventListener("change", () => {
      const locations = this.showsLocations ? "1" : "";
      const kernel = this.data.code[Number(this.choice.value)].name;
      this.apply({ kernel, panes: (this.stages ?? []).join(","), locations });
      this.selectNode();
      this.host.changed();
    });
    for (const stage of STAGES) {
      const made = button(STAGE_NAMES[stage], () => this.toggle(stage));
      this.buttons.set(stage, made);
      this.group.append(made);
    }
    this.locations[1].title = "Where operations of TTIR, TTGIR and LLIR come from: loc(…), !dbg";
    return element("div", "tools", this.choice, this.group, this.locations[0]);
  }

  /** The kernel that an address names, else the one that is, holds, or is above its node, else the node's file. */
  private kernelOf(state: Record<string, string>): KernelText {
    const { tree, frames } = this.data;
    const named = (name: string | undefined): KernelText | undefined => this.data.code.find((one) => one.name === name);
    let node = Number.parseInt(state.node ?? "0", 10);
    if (!(node < tree.parent.length)) node = 0;
    const file = node > 0 ? named(frames.file[tree.frame[node]]) : undefined;
    while (node > 0 && frames.kind[tree.frame[node]] !== FrameKind.Kernel) node = tree.parent[node];
    const kernel = node > 0 ? named(frames.name[tree.frame[node]]) : undefined;
    const asked = named(state.kernel);
    return (asked?.times ? asked : kernel) ?? asked ?? file ?? this.data.code[0];
  }

  /** Where a node stands in the file of the program that is shown, as addresses say it; empty: it is not in it. */
  private lineOf(node = "0"): string {
    const { tree, frames } = this.data;
    const frame = tree.frame[Number.parseInt(node, 10)];
    return this.kernel.times && frames.file[frame] === this.kernel.name ? `python:${frames.line[frame] - 1}` : "";
  }

  private selectNode(): void {
    const { tree, frames } = this.data;
    const node = tree.frame.findIndex((frame) => frames.name[frame] === this.kernel.name);
    if (node > 0) this.host.select(node);
  }

  private get available(): Stage[] {
    return this.kernel.panes.map((pane) => pane.stage);
  }

  /** As many as there is room for, the most telling ones. */
  private usual(): Stage[] {
    const width = this.root.clientWidth;
    const room = width < NARROW_PX ? 2 : Math.max(Math.floor(width / PANE_PX), 2);
    const chosen = PREFERRED.filter((stage) => this.available.includes(stage)).slice(0, room);
    return STAGES.filter((stage) => chosen.includes(stage));
  }

  private get shown(): Stage[] {
    const shown = (this.stages ?? this.usual()).filter((stage) => this.available.includes(stage));
    return shown.length > 0 ? shown : this.usual();
  }

  private showLocations(isOn: boolean): void {
    this.showsLocations = isOn;
    this.build();
    this.light(this.pinned, true);
    this.host.changed();
  }

  private toggle(stage: Stage): void {
    const shown = this.shown;
    const next = shown.includes(stage) ? shown.filter((one) => one !== stage) : [...shown, stage];
    if (next.length === 0) return;
    this.stages = STAGES.filter((one) => next.includes(one));
    this.build();
    if (this.pinned === null) this.showHottest();
    this.light(this.pinned, true);
    this.host.changed();
  }

  private build(): void {
    for (const pane of this.panes) pane.destroy();
    const shown = this.shown;
    this.panes = this.kernel.panes
      .filter((pane) => shown.includes(pane.stage))
      .map(
        (text) =>
          new Pane(this.kernel, text, this.host.theme, !this.showsLocations && hasLocations(text), this.notes(text), {
            hover: (row, event, isHeat) => this.hover({ stage: text.stage, row }, event, isHeat),
            leave: () => this.leave(),
            click: (row) => this.click({ stage: text.stage, row }),
          }),
      );
    this.panesElement.replaceChildren(...this.panes.map((pane) => pane.root));
    this.locations[1].checked = this.showsLocations;
    this.group.hidden = this.kernel.times !== null;
    this.locations[0].hidden = !this.kernel.panes.some(hasLocations);
    for (const [stage, button] of this.buttons) {
      button.setAttribute("aria-pressed", String(shown.includes(stage)));
      button.disabled = !this.available.includes(stage);
      const why = this.kernel.missing || `This profile has no ${STAGE_NAMES[stage]} of this kernel`;
      button.title = button.disabled ? why : `${STAGE_NAMES[stage]}: show or hide`;
    }
  }

  private notes(text: CodePane): Note[] {
    return text.stage === "python" ? notesOf(text, this.data.findings?.rows ?? [], this.kernel) : [];
  }

  /** Where samples are most; without any what a finding is about, and what that became. */
  private showHottest(): void {
    for (const pane of this.panes) {
      const [row] = pane.heat.hottest();
      if (row !== undefined) pane.reveal([row]);
    }
    const [source] = this.kernel.panes;
    const [note] = this.kernel.samples > 0 ? [] : this.notes(source);
    if (note === undefined) return;
    this.panes.find((pane) => pane.stage === source.stage)?.reveal([note.row]);
    this.reveal({ stage: source.stage, row: note.row });
  }

  private hover(line: Line, event: MouseEvent, isHeat: boolean): void {
    this.showReasons(line, event, isHeat);
    if (this.hovered?.stage === line.stage && this.hovered.row === line.row) return;
    this.hovered = line;
    this.light(line, false);
    clearTimeout(this.dwell);
    this.dwell = window.setTimeout(() => this.reveal(line), DWELL_MS);
  }

  private leave(): void {
    this.tooltip.hide();
    clearTimeout(this.dwell);
    if (this.hovered === null) return;
    this.hovered = null;
    this.light(this.pinned, true);
  }

  private click(line: Line): void {
    const isSame = this.pinned?.stage === line.stage && this.pinned.row === line.row;
    this.pin(isSame ? null : line);
    this.host.changed();
  }

  private pin(line: Line | null): void {
    this.pinned = line;
    this.light(line, true);
    if (line !== null) this.reveal(line);
  }

  private reveal(line: Line): void {
    const rows = this.links.all(line);
    for (const pane of this.panes) {
      const own = rows.get(pane.stage);
      if (own !== undefined && pane.stage !== line.stage) pane.reveal(own);
    }
  }

  /** Mark a line and everything that belongs to it. */
  private light(line: Line | null, isPinned: boolean): void {
    const rows = line === null ? new Map<Stage, number[]>() : this.links.all(line);
    for (const pane of this.panes) {
      pane.mark(rows.get(pane.stage) ?? [], line?.stage === pane.stage ? line.row : -1, isPinned);
    }
    this.status.textContent = line === null ? this.usualStatus() : this.lineStatus(line, rows);
  }

  private usualStatus(): string {
    const { kernel } = this;
    if (kernel.times) return `Of the whole run, with what each line calls: ${timesText(kernel.times) || "no times"}.`;
    const samples =
      kernel.samples > 0
        ? `${countText(Math.round(kernel.samples), "sample")}.`
        : "No samples: bragg run --sample records where warps wait.";
    const missing = kernel.missing ? ` Missing: ${kernel.missing}.` : "";
    return printable(`${samples}${missing} Point at a line to see what it became; click to keep it.`);
  }

  private lineStatus(line: Line, rows: Map<Stage, number[]>): string {
    const others = this.available.filter((stage) => stage !== line.stage);
    const counts = others.map((stage) => `${STAGE_NAMES[stage]} ${rows.get(stage)?.length ?? 0}`);
    const own = this.panes.find((pane) => pane.stage === line.stage);
    const { times } = this.kernel;
    if (times) {
      const told = own?.heat.times(line.row).map((time_ns, row): [string, number] => [times[row][0], time_ns]) ?? [];
      return printable(
        `${own?.summary(line.row) ?? ""}  →  ${timesText(told.filter(([, ns]) => ns > 0)) || "no time"}`,
      );
    }
    return printable(`${own?.summary(line.row) ?? ""}  →  lines: ${counts.join(", ")}`);
  }

  private showReasons(line: Line, event: MouseEvent, isHeat: boolean): void {
    const heat = this.panes.find((pane) => pane.stage === line.stage)?.heat;
    if (heat === undefined || !isHeat || heat.count(line.row) === 0 || this.kernel.times) {
      this.tooltip.hide();
      return;
    }
    const rows = heat.reasons(line.row).slice(0, MAX_REASONS);
    const producer = heat.waitsFor(line.row);
    const waits = producer === undefined ? "" : `, waits for line ${producer}`;
    const title = `${countText(Math.round(heat.count(line.row)), "sample")}, ${shareText(heat.share(line.row))} of the kernel${waits}`;
    this.tooltip.show(
      event.clientX,
      event.clientY,
      title,
      rows.map((reason): [string, string] => [
        `${shareText(reason.share)} ${reason.name}`,
        reason.meaning ? `${reason.group}: ${reason.meaning}` : reason.group,
      ]),
    );
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    // Between buttons Tab goes on as everywhere.
    if (!isForView(event, event.key === "Tab" ? "button, a, select, dialog" : undefined)) return;
    if (event.key === "j" || event.key === "k") this.step(event.key === "j" ? 1 : -1);
    else if (event.key === "h") this.nextHot();
    else if (event.key === "[" || event.key === "]") this.nextKernel(event.key === "]" ? 1 : -1);
    else if (event.key === "Tab" && this.pinned !== null && !event.shiftKey) this.jump();
    else if (event.key === "Escape" && this.pinned !== null) this.click(this.pinned);
    else return;
    event.preventDefault();
  };

  /** The line after or before the chosen one. */
  private step(by: 1 | -1): void {
    const pane = this.panes.find((one) => one.stage === this.pinned?.stage) ?? this.panes[0];
    const row = this.pinned === null ? 0 : Math.min(Math.max(this.pinned.row + by, 0), pane.length - 1);
    this.choose(pane, row);
  }

  /** From the chosen line to what it became in the next pane. */
  private jump(): void {
    if (this.pinned === null) return;
    const rows = this.links.all(this.pinned);
    const at = this.panes.findIndex((pane) => pane.stage === this.pinned?.stage);
    for (let step = 1; step < this.panes.length; step += 1) {
      const pane = this.panes[(at + step) % this.panes.length];
      const own = rows.get(pane.stage);
      if (own !== undefined) {
        this.choose(pane, mainRow(own));
        return;
      }
    }
  }

  private nextHot(): void {
    const pane = this.panes.find((one) => one.stage === this.pinned?.stage) ?? this.panes[0];
    const rows = pane.heat.hottest();
    if (rows.length > 0) this.choose(pane, rows[(rows.indexOf(this.pinned?.row ?? -1) + 1) % rows.length]);
  }

  private nextKernel(by: 1 | -1): void {
    const count = this.data.code.length;
    this.choice.value = String((Number(this.choice.value) + by + count) % count);
    this.choice.dispatchEvent(new Event("change"));
  }

  private choose(pane: Pane, row: number): void {
    pane.reveal([row]);
    pane.focus();
    this.pin({ stage: pane.stage, row });
    this.host.changed();
  }
}

function timesText(times: [name: string, time_ns: number][]): string {
  return times.map(([name, time_ns]) => `${name} ${timeText(time_ns)}`).join(", ");
}
